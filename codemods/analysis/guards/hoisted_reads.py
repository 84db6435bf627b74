"""Reads of Trainer properties under a rank guard -> one read above it, on every rank."""

from __future__ import annotations

import ast

from codemods.analysis.guards.guard_place import Place, Repair, statements_text
from codemods.analysis.guards.guard_split import assigned_names, used_outside
from codemods.analysis.guards.guarded_collectives import Guarded
from codemods.analysis.hooks import LIGHTNING_HOOKS
from codemods.api.findings import Applicability, Edit, InsertBefore, RemoveStatement, ReplaceExpression
from codemods.files.source import SourceModule, walk

_DECIDING = (
    ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.Lambda, ast.FunctionDef, ast.ListComp, ast.BoolOp, ast.DictComp,
    ast.SetComp, ast.GeneratorExp,
)  # fmt: skip


def hoist_reads(place: Place) -> Repair:
    guard, module = place.site.guard.node, place.module
    assert isinstance(guard, ast.If)
    if place.function is None:
        return Repair(reason="whether every rank comes to the guard is not shown")
    if place.function.name not in LIGHTNING_HOOKS:
        return Repair(reason=f"{place.function.name} is no hook: whether every rank comes to the guard is not shown")
    if any(s.collective.name == "estimated_stepping_batches" for s in place.sites):
        return Repair(reason="it loads the data: read it once on every rank, where the schedule is made")
    if {n.id for n in walk(guard.test) if isinstance(n, ast.Name)} & assigned_names(guard.body):
        return Repair(reason="the guarded block changes what the test reads")
    edits: list[Edit] = []
    for text in dict.fromkeys(s.text for s in place.sites):
        made = _hoist_one(place, guard, [s for s in place.sites if s.text == text])
        if not made:
            return Repair(reason=f"there is no free name to hold {text} above the guard")
        edits += made
    nested = any(not _is_straight(module, s.node, guard) for s in place.sites)
    if not place.site.guard.alone or nested:
        assumed = "assumes that the read may happen each time, not only where the other conditions hold"
        return Repair(tuple(edits), Applicability.UNSAFE, assumed)
    return Repair(tuple(edits), Applicability.SAFE)


def _hoist_one(place: Place, guard: ast.If, sites: list[Guarded]) -> list[Edit]:
    """One read above the guard: the statement `name = read` itself, or a new name for the value."""
    module, path = place.module, place.module.path
    first = module.statement_of(sites[0].node)
    at = module.span(guard)
    moves = len(sites) == 1 and len(guard.body) > 1 and first in guard.body
    if moves and isinstance(first, ast.Assign) and first.value is sites[0].node:
        target = first.targets[0]
        if len(first.targets) == 1 and isinstance(target, ast.Name) and not _bound_elsewhere(place, target.id, first, guard):
            return [InsertBefore(path, at, statements_text(module, [first])), RemoveStatement(path, module.span(first))]
    name = sites[0].collective.name
    taken = {n.id for n in walk(place.function) if isinstance(n, ast.Name)} if place.function else set()
    if name in taken or name in module.imports:
        return []
    edits: list[Edit] = [InsertBefore(path, at, f"{name} = {sites[0].text}")]
    return [*edits, *(ReplaceExpression(path, module.span(s.node), name) for s in sites)]


def _bound_elsewhere(place: Place, name: str, statement: ast.stmt, guard: ast.If) -> bool:
    inside = {id(n) for n in walk(statement)}
    bound = [
        n for n in walk(place.function or place.module.tree)
        if isinstance(n, ast.Name) and n.id == name and id(n) not in inside and isinstance(n.ctx, (ast.Store, ast.Del))
    ]  # fmt: skip
    return bool(bound) or used_outside(place.module, name, guard, place.function)


def _is_straight(module: SourceModule, node: ast.AST, guard: ast.If) -> bool:
    """True if nothing decides between the guard and the read."""
    below = node
    for up in module.ancestors(node):
        if up is guard:
            return True
        if not isinstance(up, (ast.stmt, ast.expr, ast.keyword, ast.withitem, ast.comprehension)):
            return False
        if isinstance(up, (*_DECIDING, ast.comprehension)) and not _comes_first(up, below):
            return False
        below = up
    return False


def _comes_first(deciding: ast.AST, part: ast.AST) -> bool:
    """True for the part that is worked out once whatever is decided: what is gone over, the test itself."""
    if isinstance(deciding, (ast.For, ast.comprehension)):
        return part is deciding.iter
    if isinstance(deciding, (ast.If, ast.IfExp)):
        return part is deciding.test
    if isinstance(deciding, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return part is deciding.generators[0]
    return False
