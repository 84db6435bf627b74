"""Places that rank 0 alone comes to, since the others have ended above: they lack a name that is read there.

`if is_main: dev = load()` and `prepare(model, dev)` for all: behind it there is nobody to share a file with, or a console.
"""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.positions import position
from codemods.analysis.ranks.failing_statements import TRAINS, certain, evaluated
from codemods.analysis.ranks.made_on_zero import Made, made_on_zero
from codemods.analysis.ranks.made_uses import is_asked_for, uses_of_made
from codemods.analysis.ranks.outside_calls import is_called_from_outside, is_hook
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_CLIMBS = 3


def others_have_ended(project: Project, module: SourceModule, node: ast.AST, climbs: int = _CLIMBS) -> bool:
    """True behind such a read, and in a function that is only called behind one."""
    function = module.function_of(node)
    if function is None:
        return False
    ends = _ends_of_others(project, module)
    for block, index in _blocks(module, node, function) if ends else ():
        if any(id(s) in ends for s in block[:index]):
            return True
    if not climbs or function.decorator_list or not _is_called_by_the_project_alone(project, module, function):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not used.calls:
        return False
    return all(others_have_ended(project, s.module, s.call, climbs - 1) for s in used.calls)


def _is_called_by_the_project_alone(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a function at the top of its file, and a method that neither Python nor a framework calls."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return owner is module.tree
    return not is_hook(function.name) and not is_called_from_outside(project, class_facts(project, module, owner), function.name)


def others_end_nearby(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True above such a read, too, where nothing is trained before it: whoever runs several processes has that to see."""
    function = module.function_of(node)
    if function is None or not (ends := _ends_of_others(project, module)):
        return False
    for block, index in _blocks(module, node, function):
        at = next((i for i in range(index + 1, len(block)) if id(block[i]) in ends), None)
        if at is not None and not any(TRAINS.search(module.text_of(s)) for s in block[index:at]):
            return True
    return False


def _blocks(module: SourceModule, node: ast.AST, function: FunctionNode) -> list[tuple[list[ast.stmt], int]]:
    """The blocks of the function round the place, each with the statement of it that holds the place."""
    found = []
    below = node
    for up in module.ancestors(node):
        if (place := position(module, below)) is not None:
            found.append((place.block, place.index))
        if up is function:
            break
        below = up
    return found


def _ends_of_others(project: Project, module: SourceModule) -> frozenset[int]:
    """The statements, by their ids, that end every rank but 0: in their function, whichever way it is run."""

    def build() -> frozenset[int]:
        made = (m for m in made_on_zero(project, module) if isinstance(m.home, (ast.FunctionDef, ast.AsyncFunctionDef)))
        return frozenset(i for m in made for i in _ending(project, module, m))

    return project.memo(("ends of others", module.path), build)


def _ending(project: Project, module: SourceModule, made: Made) -> list[int]:
    found = []
    for use in uses_of_made(module, made):
        statement = module.statement_of(use)
        if statement.lineno <= made.line or (made.until and use.lineno > made.until):
            continue
        if not any(part is use for whole in evaluated(statement) for part in certain(whole)):
            continue
        if ranks_at(module, use, project=project).some or under_such_a_name(project, module, statement):
            continue
        if not is_asked_for(project, module, use, made.name):
            found += _with_blocks(module, statement)
    return found


def _with_blocks(module: SourceModule, statement: ast.stmt) -> list[int]:
    """The statement and the `with` blocks round it, which it leaves as well; `suppress` lets nothing out."""
    found = [id(statement)]
    above = module.parent(statement)
    while isinstance(above, (ast.With, ast.AsyncWith)):
        if any("suppress" in module.text_of(item.context_expr) for item in above.items):
            break
        found.append(id(above))
        above = module.parent(above)
    return found
