"""An exit of some ranks above a collective -> the work between them under a guard, the collective for every rank."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.guards.guard_place import Place, Repair, comments_above, comments_inside, refused, turned
from codemods.analysis.guards.guard_split import Parts, assigned_names, call_of, changed_attributes, leaves, parts_of, used_names
from codemods.analysis.guards.unmatched_collectives import Unmatched
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at, split_of
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.analysis.ranks.same_way import parting_ways
from codemods.analysis.whole_body import is_idle, whole_body
from codemods.api.findings import AddComment, Applicability, Edit, RemoveStatement, WrapInGuard
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
_BY_HAND = "turn the early exit into an if-block, so that every rank comes to the collective"


def renest(place: Place) -> Repair:
    """`if not rank 0: return`, work, collective -> `if rank 0: work`, collective. So with `continue` in a loop."""
    leaving, module = place.site.guard.node, place.module
    if not isinstance(leaving, ast.If) or not is_idle(leaving.orelse) or place.function is None or not module.is_whole(leaving):
        return Repair(reason=_BY_HAND)
    block = module.block_of(leaving)
    value, kept = _left(leaving, block, place.function, module)
    if value is None:
        return Repair(reason=_BY_HAND)
    after = block[block.index(leaving) + 1 :]
    last = after[-1] if after and isinstance(after[-1], ast.Return) else None
    given = ast.unparse(last.value) if last is not None and last.value is not None else "None"
    if value != given:
        return Repair(reason="the early return gives a value: turn it into an if-block by hand")
    parts = parts_of([s for s in after if s is not last], [s.node for s in place.sites])
    if parts is None or parts.head or not parts.rest or not place.site.guard.alone:
        return Repair(reason=_BY_HAND)
    if leaves(parts.rest):
        return Repair(reason="the function can be left once more before the collective: rank 0 would still miss it")
    if why := refused(place, leaving, leaving.body, Parts((), parts.rest, parts.tail)) or _collective_inside(place, parts.rest):
        return Repair(reason=why)
    if why := _changed(leaving, kept, parts.rest, last):
        return Repair(reason=why)
    return Repair(tuple(_edits(module, leaving, kept, parts.rest)), SAFE)


def _left(
    leaving: ast.If, block: list[ast.stmt], function: FunctionNode, module: SourceModule
) -> tuple[str | None, list[ast.stmt]]:
    """(what the exit gives back, the statements before it); None where it does not end the block that it stands in."""
    *kept, only = leaving.body
    if any(not isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass)) for s in kept):
        return None, []
    if isinstance(only, ast.Return) and block is whole_body(function):
        simple = only.value is None or isinstance(only.value, (ast.Name, ast.Constant))
        return (ast.unparse(only.value) if only.value is not None else "None") if simple else "?", kept
    owner = module.parent(leaving)
    if isinstance(only, ast.Continue) and isinstance(owner, (ast.For, ast.AsyncFor, ast.While)) and block is owner.body:
        return "None", kept
    return None, []


def _changed(leaving: ast.If, kept: list[ast.stmt], rest: Iterable[ast.stmt], last: ast.Return | None) -> str:
    rest = list(rest)
    if assigned_names(kept) & used_names(leaving.test) or assigned_names(kept) & assigned_names(rest):
        return "the exit sets what the test or the work reads: by hand"
    if last is not None and last.value is not None and used_names(last.value) & assigned_names(rest):
        return "the value that is given back is made by rank 0 alone: by hand"
    if changed_attributes(kept) and {ast.unparse(n) for n in walk(leaving.test)} & changed_attributes(kept):
        return "the exit sets what the test reads: by hand"
    return ""


def _edits(module: SourceModule, leaving: ast.If, kept: list[ast.stmt], rest: tuple[ast.stmt, ...]) -> list[Edit]:
    first, last = module.span(rest[0]), module.span(rest[-1])
    path = module.path
    guard = WrapInGuard(path, first, turned(module, leaving.test), last, comments_inside=True)
    if kept:
        return [RemoveStatement(path, module.span(leaving.body[-1])), guard]
    edits: list[Edit] = [RemoveStatement(path, module.span(leaving))]
    if comments := (*comments_above(module, leaving), *comments_inside(module, leaving)):
        edits.append(AddComment(path, first, comments))
    return [*edits, guard]


def _collective_inside(place: Place, rest: Iterable[ast.stmt]) -> str:
    held = _holds(place.project, place.module, rest)
    return "another collective stands in the block that only rank 0 would run" if held else ""


def _holds(project: Project, module: SourceModule, statements: Iterable[ast.stmt]) -> bool:
    nodes = [n for s in statements for n in walk(s) if isinstance(n, (ast.Call, ast.Attribute))]
    return any(
        collective_at(module, n, project) or (isinstance(n, ast.Call) and reached_by(project, module, n)) for n in nodes
    )


# An exit inside the guarded block


def renest_inner(project: Project, module: SourceModule, found: Unmatched) -> Repair:
    """`if rank 0: (if x: return; work)`, barrier -> `if rank 0: (if not x: work)`, barrier."""
    function = found.function
    leaving = next((s for s in module.nodes(ast.If) if s.lineno == found.at and module.function_of(s) is function), None)
    guard = module.parent(leaving) if leaving is not None else None
    if function is None or leaving is None or not isinstance(guard, ast.If) or guard not in function.body or guard.orelse:
        return Repair(reason=_BY_HAND)
    split = split_of(module, guard.test, project)
    if split is None or not split.alone or leaving not in guard.body or leaving.orelse or len(leaving.body) != 1:
        return Repair(reason=_BY_HAND)
    only = leaving.body[0]
    if not isinstance(only, ast.Return) or not (only.value is None or ast.unparse(only.value) == "None"):
        return Repair(reason="the early return gives a value: turn it into an if-block by hand")
    rest = guard.body[guard.body.index(leaving) + 1 :]
    behind = function.body[function.body.index(guard) + 1 :]
    if not rest or not all(_only_waits(project, module, s) for s in behind):
        return Repair(reason="whether what stands behind the guard should run then as well has to be decided")
    others = [s for s in guard.body if s is not leaving]
    if leaves(others) or _holds(project, module, others) or not module.is_whole(leaving):
        return Repair(reason="the guarded block can be left in more than one place: by hand")
    if ranks_at(module, guard, project=project) is not Ranks.ALL:
        return Repair(reason="more than one rank test stands round it")
    edits = _edits(module, leaving, [], tuple(rest))
    for line, assumed in parting_ways(project, module, guard, function):
        return Repair(tuple(edits), UNSAFE, f"assumes that {assumed} (line {line})")
    return Repair(tuple(edits), SAFE)


def _only_waits(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    call = call_of(statement)
    found = collective_at(module, call, project) if isinstance(call, ast.Call) else None
    return found is not None and found.waits_only
