"""A folder whose name every rank works out as the next that is free, and that rank 0 alone makes: the others count it, too."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.files.counted_names import Counted, counted_in
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_MEETS = ("barrier", "wait_for_everyone", "broadcast")


@record
class CountedApart:
    """statement: where every rank works the name out. found: what it counts. used: the line where every rank takes the name."""

    statement: ast.stmt
    found: Counted
    used: int


def counted_apart(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> CountedApart | None:
    """What a call on rank 0 makes, where nothing lets the others count before it, or gives them rank 0's name."""
    if not isinstance(path, ast.Name) or ranks_at(module, call, project=project) not in (Ranks.ZERO, Ranks.LOCAL_ZERO):
        return None
    bound = _bound_once(project, module, call, path)
    if bound is None or _meet_between(module, bound.node, call) or is_handed_round(project, module, call):
        return None
    used = _used_by_all(project, module, call, path.id)
    found = counted_in(project, module, path) if used else None
    if found is None or ranks_reaching(project, found.module, found.node).some:
        return None
    return CountedApart(module.statement_of(bound.node), found, used)


def _bound_once(project: Project, module: SourceModule, call: ast.Call, name: ast.Name) -> Binding | None:
    bound = bindings_in(module, module.function_of(call), name.id)
    if len(bound) != 1 or bound[0].value is None or bound[0].parameter:
        return None
    node = bound[0].node
    here = module.function_of(node) is module.function_of(call) and module.statement_of(node).lineno < call.lineno
    return bound[0] if here and not ranks_reaching(project, module, node).some else None


def _meet_between(module: SourceModule, first: ast.AST, call: ast.Call) -> bool:
    """True where the ranks meet below the place that counts, above the one that makes the folder; and where a value is sent."""
    start = module.statement_of(first).lineno
    for other in module.nodes(ast.Call):
        name = getattr(other.func, "attr", "") or last(getattr(other.func, "id", ""))
        if any(word in name for word in _MEETS) and module.function_of(other) is module.function_of(call):
            if start <= other.lineno <= call.lineno or "broadcast" in name:
                return True
    return False


def _used_by_all(project: Project, module: SourceModule, call: ast.Call, name: str) -> int:
    """The first line below the call in which every rank hands the name on; 0 for none."""
    reads = (n for n in module.reads_of(name) if isinstance(n, ast.Name) and n.lineno > call.lineno)
    own = (n for n in reads if module.function_of(n) is module.function_of(call))
    return next((n.lineno for n in own if not ranks_at(module, n, project=project).some), 0)


def is_handed_round(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where the function, or one that calls it, has given the others above what one rank has chosen."""
    function = module.function_of(call)
    sites = uses_of(project, module, function).outside_tests().calls if function is not None else ()
    return any(_broadcasts_above(m, node) for m, node in ((module, call), *((s.module, s.call) for s in sites)))


def _broadcasts_above(module: SourceModule, node: ast.Call) -> bool:
    function = module.function_of(node)
    first = function.lineno if function is not None else 0
    return any(
        first <= c.lineno <= node.lineno
        for c in module.nodes(ast.Call)
        if "broadcast" in (last(dotted(c.func)) or getattr(c.func, "attr", ""))
    )
