"""Names that only rank 0 gives a value: every binding stands under a test of the rank and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.output.run_before import bound_above
from codemods.analysis.ranks.rank_guards import Ranks, guards_over, ranks_at
from codemods.analysis.starred_names import star_may_bring
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)


@record
class Made:
    """A name that is bound on rank 0 alone: in a class (`self.x`), a function or a file, the line of the binding, and its test.

    test: "" where it cannot be written anywhere in the home. until: the line from which on every rank has it; 0 for none.
    """

    home: ast.ClassDef | FunctionNode | ast.Module
    name: str
    line: int
    test: str
    until: int = 0

    @property
    def error(self) -> str:
        """What a rank without it ends with."""
        if self.name.startswith("self."):
            return "AttributeError"
        return "NameError" if isinstance(self.home, ast.Module) else "UnboundLocalError"


def made_on_zero(project: Project, module: SourceModule) -> Iterator[Made]:
    """The names whose every binding stands under a test for rank 0 and nothing else."""
    imports = (*module.nodes(ast.Import), *module.nodes(ast.ImportFrom))
    for assign in (*module.nodes(ast.Assign), *module.nodes(ast.AnnAssign), *imports):
        function = module.function_of(assign)
        if function is None and (module.class_of(assign) is not None or isinstance(module.parent(assign), ast.Module)):
            continue
        if ranks_at(module, assign, project=project) not in _OF_ZERO:
            continue
        if any(g.kind == "decorator" or g.kind == "exit" for g in guards_over(module, assign, project=project)):
            continue
        if isinstance(assign, (ast.Import, ast.ImportFrom)):
            yield from _imported_on_zero(project, module, function, assign)
            continue
        for target in _targets(assign):
            if isinstance(target, ast.Attribute) and dotted(target.value) == "self":
                owner = module.class_of(target)
                if owner is not None and _on_zero(project, module, attribute_bindings(module, target)):
                    yield Made(owner, dotted(target), assign.lineno, _test_over(project, module, assign, {"self"}))
            elif isinstance(target, ast.Name) and _has_no_other(project, module, function, target.id):
                yield Made(function or module.tree, target.id, assign.lineno, _test_where(project, module, function, assign))
            elif isinstance(target, ast.Name) and function is not None and (until := _bound_later(project, module, target)):
                yield Made(function, target.id, assign.lineno, _test_where(project, module, function, assign), until)


def _targets(assign: ast.stmt) -> list[ast.expr]:
    if isinstance(assign, ast.AnnAssign):
        return [assign.target] if assign.value is not None else []
    given = assign.targets if isinstance(assign, ast.Assign) else []
    return [part for t in given for part in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]


def _has_no_other(project: Project, module: SourceModule, function: FunctionNode | None, name: str) -> bool:
    """True where all that gives the name a value stands under a test for rank 0; a name of the file may come by a star import."""
    bound = bindings_in(module, function, name)
    if any(module.function_of(b.node) is not function for b in bound if not b.parameter):
        return False
    if name in module.imports or (function is None and star_may_bring(project, module, name)):
        return False
    return _on_zero(project, module, bound)


def _bound_later(project: Project, module: SourceModule, target: ast.Name) -> int:
    """The last line of the first statement below that gives a local name a value on every rank: what it reads itself is above.

    0 where one of them stands above, or in a loop round both, whose next turn has that value.
    """
    function = module.function_of(target)
    bound = bindings_in(module, function, target.id)
    if target.id in module.imports or any(b.parameter or module.function_of(b.node) is not function for b in bound):
        return 0
    others = [b for b in bound if ranks_at(module, b.node, project=project) not in _OF_ZERO]
    places = [module.statement_of(b.node) for b in others]
    if not places or min(p.lineno for p in places) <= target.lineno or _shares_a_loop(module, target, places):
        return 0
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) and target.id in n.names for n in walk(function or module.tree)):
        return 0
    first = min(places, key=lambda p: p.lineno)
    plain = isinstance(first, (ast.Assign, ast.AnnAssign)) and first.value is not None
    return (first.end_lineno or first.lineno) if plain else first.lineno - 1


def _shares_a_loop(module: SourceModule, target: ast.Name, places: list[ast.stmt]) -> bool:
    loops = {id(up) for up in module.ancestors(target) if isinstance(up, (ast.For, ast.AsyncFor, ast.While))}
    return any(id(up) in loops for place in places for up in module.ancestors(place))


def _imported_on_zero(
    project: Project, module: SourceModule, function: FunctionNode | None, node: ast.Import | ast.ImportFrom
) -> Iterator[Made]:
    """`import wandb` under the test, and nowhere else."""
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        imports: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
        others = (a for n in imports if n is not node for a in n.names)
        if name != "*" and not any((a.asname or a.name.partition(".")[0]) in (name, "*") for a in others):
            if not bindings_in(module, function, name) and (function is None or not bindings_in(module, None, name)):
                yield Made(function or module.tree, name, node.lineno, _test_where(project, module, function, node))


def _test_where(project: Project, module: SourceModule, function: FunctionNode | None, node: ast.stmt) -> str:
    names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} if function is not None else set()
    return _test_over(project, module, node, names | {name for name, _ in bound_above(module, function, node)})


def _test_over(project: Project, module: SourceModule, assign: ast.stmt, known: set[str]) -> str:
    """The plain test that a binding stands under, if it is made of names that are known everywhere."""
    for guard in guards_over(module, assign, project=project):
        if guard.kind == "if" and guard.alone and isinstance(guard.node, ast.If):
            roots = {n.id for n in ast.walk(guard.node.test) if isinstance(n, ast.Name)}
            return module.text_of(guard.node.test) if roots <= known | set(module.imports) else ""
    return ""


def _on_zero(project: Project, module: SourceModule, bound: list[Binding]) -> bool:
    """True where rank 0 alone comes to each binding, and one of them is more than a change of what is there (`total += x`)."""
    bound_anew = [b for b in bound if not isinstance(b.node, ast.AugAssign)]
    if not bound_anew or any(b.parameter or b.value is None for b in bound_anew):
        return False
    return all(ranks_at(module, b.node, project=project) in _OF_ZERO for b in bound)
