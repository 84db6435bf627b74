"""Where every rank uses a name that rank 0 alone has: the others end there, and come to nothing behind it."""

from __future__ import annotations

import ast

from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.ranks.made_on_zero import Made, made_on_zero
from codemods.analysis.ranks.made_uses import is_asked_for, is_in_function, is_used_by_all, uses_of_made
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.set_elsewhere import may_be_set_elsewhere
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project

_PARTING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def used_on_all(project: Project, module: SourceModule, made: Made) -> ast.expr | None:
    """The first use that every rank comes to."""
    if is_set_elsewhere(project, module, made):
        return None
    for node in uses_of_made(module, made):
        statement, outside = module.statement_of(node), is_in_function(module, made, node)
        if ranks_at(module, node, project=project).some or not _is_reached(project, module, made, node):
            continue
        if outside and not is_used_by_all(project, module, made, node):
            continue
        if under_such_a_name(project, module, statement) or is_asked_for(project, module, node, made.name):
            continue
        if not made.name.startswith("self.") and not outside and statement.lineno < made.line:
            continue
        if made.until and line_of(node) > made.until:
            continue
        return node
    return None


def is_set_elsewhere(project: Project, module: SourceModule, made: Made) -> bool:
    """True for an attribute that a base class or another file may set."""
    if not isinstance(made.home, ast.ClassDef) or not made.name.startswith("self."):
        return False
    return may_be_set_elsewhere(project, module, made.home, made.name.removeprefix("self."))


def ends_above(project: Project, module: SourceModule, statement: ast.stmt) -> ast.expr | None:
    """The use, on the one way to a statement, at which all ranks but rank 0 end: they never come to the statement.

    Only one that no test stands over but those that stand over the statement, too.
    """
    return next((use for use in _ends(project, module) if _is_on_the_way(module, use, statement)), None)


def is_missing_elsewhere(project: Project, module: SourceModule, node: ast.AST, name: str) -> bool:
    """True for a name of the function round a node that only rank 0 has, where the others end at a use of it."""
    function = module.function_of(node)
    return any(isinstance(u, ast.Name) and u.id == name and module.function_of(u) is function for u in _ends(project, module))


def _ends(project: Project, module: SourceModule) -> tuple[ast.expr, ...]:
    def build() -> tuple[ast.expr, ...]:
        found = (used_on_all(project, module, m) for m in made_on_zero(project, module) if m.name.isidentifier())
        return tuple(dict.fromkeys(use for use in found if use is not None))

    return project.memo(("ends of the other ranks", module.path), build)


def _is_on_the_way(module: SourceModule, use: ast.expr, statement: ast.stmt) -> bool:
    if module.function_of(use) is not module.function_of(statement) or use.lineno >= statement.lineno:
        return False
    if any(isinstance(up, (ast.IfExp, ast.BoolOp, *_PARTING)) for up in _inside(module, use)):
        return False
    here = module.statement_of(use)
    while isinstance(above := module.parent(here), (ast.With, ast.AsyncWith)):
        here = above
    return any(module.parent(up) is module.parent(here) and _same_block(module, here, up) for up in _ways(module, statement))


def _inside(module: SourceModule, use: ast.expr) -> list[ast.AST]:
    """What stands between the use and its statement."""
    out: list[ast.AST] = []
    for up in module.ancestors(use):
        if isinstance(up, ast.stmt):
            break
        out.append(up)
    return out


def _ways(module: SourceModule, statement: ast.stmt) -> list[ast.stmt]:
    out = [statement]
    for up in module.ancestors(statement):
        if isinstance(up, _PARTING):
            break
        if isinstance(up, ast.stmt):
            out.append(up)
    return out


def _same_block(module: SourceModule, first: ast.stmt, second: ast.stmt) -> bool:
    """True where both stand in one list of statements, the first above the second."""
    parent = module.parent(first)
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody", "handlers"))
    for block in blocks:
        if isinstance(block, list) and any(s is first for s in block) and any(s is second for s in block):
            return first.lineno < second.lineno
    return False


def _is_reached(project: Project, module: SourceModule, made: Made, node: ast.AST) -> bool:
    """True where every rank comes to the use; of a name of the function, where not rank 0 alone calls the function."""
    ranks = ranks_reaching(project, module, node)
    own = not made.name.startswith("self.") and not is_in_function(module, made, node)
    return not ranks.some or (own and ranks is Ranks.UNKNOWN)
