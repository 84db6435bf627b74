"""`if not rank 0: return` above a collective -> the work between them under a guard, the collective for every rank."""

from __future__ import annotations

import ast

from codemods.analysis.guards.guard_place import Place, Repair, comments_above, refused, turned
from codemods.analysis.guards.guard_split import Parts, leaves, parts_of
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.findings import AddComment, Applicability, Edit, RemoveStatement, WrapInGuard
from codemods.source import walk


def renest(place: Place) -> Repair:
    """`if not rank 0: return`, work, collective -> `if rank 0: work`, collective."""
    leaving, module, function = place.site.guard.node, place.module, place.function
    assert isinstance(leaving, ast.If)
    if function is None or leaving not in function.body or leaving.orelse or len(leaving.body) != 1:
        return Repair(reason="turn the early exit into an if-block, so that every rank comes to the collective")
    only = leaving.body[0]
    if not isinstance(only, ast.Return) or not (only.value is None or ast.unparse(only.value) == "None"):
        return Repair(reason="the early return gives a value: turn it into an if-block by hand")
    after = function.body[function.body.index(leaving) + 1 :]
    parts = parts_of(after, [s.node for s in place.sites])
    if parts is None or parts.head or not parts.rest or not place.site.guard.alone:
        return Repair(reason="turn the early return into an if-block, so that every rank comes to the collective")
    if leaves(parts.rest):
        return Repair(reason="the function can be left once more before the collective: rank 0 would still miss it")
    if why := refused(place, leaving, Parts((), parts.rest, parts.tail)) or _collective_inside(place, parts):
        return Repair(reason=why)
    first, last = module.span(parts.rest[0]), module.span(parts.rest[-1])
    edits: list[Edit] = [RemoveStatement(module.path, module.span(leaving))]
    if comments := comments_above(module, leaving):
        edits.append(AddComment(module.path, first, comments))
    edits.append(WrapInGuard(module.path, first, turned(module, leaving.test), last))
    return Repair(tuple(edits), Applicability.SAFE)


def _collective_inside(place: Place, parts: Parts) -> str:
    for statement in parts.rest:
        for node in walk(statement):
            if isinstance(node, ast.Call) and (
                collective_at(place.module, node, place.project) or reached_by(place.project, place.module, node)
            ):
                return "another collective stands in the block that only rank 0 would run"
    return ""
