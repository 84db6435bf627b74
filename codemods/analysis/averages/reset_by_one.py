"""Sums that every rank adds to and that are put together over the ranks, and that rank 0 alone sets back to their start."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import bind, is_bound
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_JOINS = frozenset(
    {"all_reduce", "reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "gather", "gather_object"}
)  # fmt: skip
_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_LOOPS = (ast.For, ast.While)
_SETS_BACK = frozenset({"clear", "zero_", "fill_", "reset", "copy_"})


@record
class ResetByOne:
    """statement: sets the sum back on rank 0. added: where every rank adds to it; joined: what puts it together."""

    statement: ast.Assign
    name: str
    added: ast.AST
    joined: ast.Call


def reset_by_one(project: Project, module: SourceModule) -> Iterator[ResetByOne]:
    """One for each such sum, in the order of the file."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if len(assign.targets) != 1 or not isinstance(target, ast.Name) or ranks_at(module, assign, project=project) not in _ZERO:
            continue
        function = module.function_of(assign)
        loops = [up for up in module.ancestors(assign) if isinstance(up, _LOOPS) and module.function_of(up) is function]
        for loop in loops:
            if ranks_at(module, loop, project=project) is Ranks.ALL:
                if (found := _in_loop(project, module, assign, target.id, loop)) is not None:
                    yield found
                    break


def _in_loop(
    project: Project, module: SourceModule, assign: ast.Assign, name: str, loop: ast.For | ast.While
) -> ResetByOne | None:
    function = module.function_of(assign)
    bound = [b for b in bindings_in(module, function, name) if not b.parameter]
    start = ast.dump(assign.value)
    above = [b for b in bound if not _stands_in(b.node, loop)]
    begins = any(b.value is not None and ast.dump(b.value) == start for b in above)
    if not begins or _is_set_elsewhere(module, bound, assign, loop):
        return None
    added = next((n for n in walk(loop) if isinstance(n, ast.AugAssign) and _root(n.target) == name), None)
    if added is None or not isinstance(added.op, ast.Add) or ranks_at(module, added, project=project) is not Ranks.ALL:
        return None
    for call in (n for n in walk(loop) if isinstance(n, ast.Call) and module.function_of(n) is function):
        if _joins(project, module, call, name, loop) and ranks_at(module, call, project=project) is Ranks.ALL:
            return ResetByOne(assign, name, added, call)
    return None


def _is_set_elsewhere(module: SourceModule, bound: list[Binding], assign: ast.Assign, loop: ast.stmt) -> bool:
    """True where the loop gives the name another value, on any rank, or sets what it holds back in its own place."""
    if any(_stands_in(b.node, loop) and b.node is not assign and not isinstance(b.node, ast.AugAssign) for b in bound):
        return True
    name = dotted(assign.targets[0])
    calls = (n for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(c.func.attr in _SETS_BACK and _root(c.func.value) == name for c in calls if isinstance(c.func, ast.Attribute))


def _joins(project: Project, module: SourceModule, call: ast.Call, name: str, loop: ast.stmt) -> bool:
    """True for a collective of torch that is handed the sum, or what the loop makes of it, and a function that makes one."""
    if name not in _names_behind(module, call, [*call.args, *(k.value for k in call.keywords)], loop):
        return False
    if _is_collective(module, call):
        return True
    site = called_function(project, module, call)
    given = bind(site.node, call, bound=is_bound(site.module, site.node)) if site is not None else None
    taking = {p for p, value in (given or {}).items() if name in _names_behind(module, call, [value], loop)}
    for inner in (n for n in walk_scope(site.node) if isinstance(n, ast.Call)) if site is not None else ():
        if site is not None and _is_collective(site.module, inner):
            if taking & _names_behind(site.module, inner, inner.args, site.node):
                return True
    return False


def _is_collective(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    joins = last(name) in _JOINS and name.startswith("torch.distributed.")
    return joins and not any(k.arg == "group" for k in call.keywords)


def _names_behind(module: SourceModule, call: ast.Call, given: Sequence[ast.expr], inside: ast.stmt) -> set[str]:
    """The names in what a call is given, and those of which they are made inside of the loop or function."""
    function = module.function_of(call)
    names = {n.id for a in given for n in (a, *walk(a)) if isinstance(n, ast.Name)}
    for name in tuple(names):
        for made in bindings_in(module, function, name):
            if made.value is not None and _stands_in(made.node, inside):
                names |= {n.id for n in (made.value, *walk(made.value)) if isinstance(n, ast.Name)}
    return names


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stands_in(node: ast.AST, loop: ast.stmt) -> bool:
    return loop.lineno <= getattr(node, "lineno", 0) <= (loop.end_lineno or loop.lineno)
