"""Collectives without a partner: what the matching check finds besides a plain guard, and what it finds to be right after all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.guards.guarded_collectives import SHOWN, Guarded
from codemods.analysis.guards.no_group_at import no_group_at
from codemods.analysis.ranks.collectives import PENDING
from codemods.analysis.ranks.matching import Mismatch, mismatches, pairing
from codemods.analysis.ranks.rank_guards import Guard, guards_over
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.trace_items import Meeting, Side, Step, meetings
from codemods.analysis.ranks.traces import trace_of
from codemods.analysis.ranks.uses import calls_of
from codemods.api.findings import Evidence, PathRole, PathStep
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_ROOTED = frozenset({"gather", "gather_object", "scatter", "scatter_object_list"})


@record
class Unmatched:
    """A collective that one side meets alone. at: the line at which the ranks part. why: what parts them
    there. by_exit: some of them leave the function or the loop. in_turn: a block that lets the ranks in one after the other."""

    function: FunctionNode | None
    mismatch: Mismatch
    at: int
    why: str
    by_exit: bool = False
    in_turn: bool = False

    @property
    def node(self) -> ast.AST:
        return self.mismatch.meeting.node

    @property
    def text(self) -> str:
        return " -> ".join(step.text for step in self.mismatch.meeting.steps)


def unmatched_collectives(project: Project, module: SourceModule) -> tuple[Unmatched, ...]:
    """Those that the functions of a file part over themselves, in source order; what a callee does is told there."""
    return project.memo(("unmatched collectives", module.path), lambda: _unmatched(project, module))


def _unmatched(project: Project, module: SourceModule) -> tuple[Unmatched, ...]:
    all_here = [(f, m) for f in (*module.functions, None) for m in mismatches(project, module, f)]
    halves = {
        (m.side, m.meeting.name, module.class_of(m.meeting.node)) for _, m in all_here if m.other is None and not m.leaves
    }
    out = []
    for function, mismatch in all_here:
        if mismatch.meeting.collective.writes_its_part or no_group_at(project, module, mismatch.meeting.node):
            continue
        half = (mismatch.side.turned, mismatch.meeting.name, module.class_of(mismatch.meeting.node))
        if mismatch.other is None and not mismatch.leaves and half in halves:
            continue  # a way in and a way out: each has the other's half
        if mismatch.other is not None and mismatch.other.name == mismatch.meeting.name and mismatch.meeting.name in _ROOTED:
            continue  # the root hands over a list, the others do not: one call
        if _other_half_around(project, module, function, mismatch):
            continue
        found = _parting(project, module, function, mismatch)
        if found is not None and not settled_by_callers(project, module, function, mismatch.side, mismatch.meeting.name):
            out.append(found)
    return tuple(out)


def _other_half_around(
    project: Project, module: SourceModule, function: FunctionNode | None, mismatch: Mismatch
) -> bool:
    """True where the function round this one has the collective on the other side: rank 0 calls, the others answer in a loop."""
    around = module.function_of(function) if function is not None else None
    if around is None:
        return False
    mine = {m.node for m in meetings(trace_of(project, module, around, mismatch.side).items)}
    theirs = meetings(trace_of(project, module, around, mismatch.side.turned).items)
    return any(m.name == mismatch.meeting.name and m.node not in mine for m in theirs)


def _parting(
    project: Project, module: SourceModule, function: FunctionNode | None, mismatch: Mismatch
) -> Unmatched | None:
    if mismatch.leaves:
        if _comes_at_the_end(module, mismatch):
            return None
        other = mismatch.side.turned.value
        return Unmatched(function, mismatch, mismatch.leaves, f"{other} may leave in line {mismatch.leaves}", True)
    for meeting in (mismatch.meeting, mismatch.other):
        guard = _guard(project, module, meeting) if meeting else None
        if guard is not None:
            return Unmatched(function, mismatch, guard.line, _words(module, guard), guard.kind == "exit")
    for up in module.ancestors(mismatch.meeting.node):
        if isinstance(up, (ast.Match, ast.With, ast.AsyncWith)):
            head = up.subject if isinstance(up, ast.Match) else up.items[0].context_expr
            word = "match" if isinstance(up, ast.Match) else "with"
            return Unmatched(function, mismatch, up.lineno, f"`{word} {module.text_of(head)}`", in_turn=word == "with")
        if up is function:
            break
    return None


def _comes_at_the_end(module: SourceModule, mismatch: Mismatch) -> bool:
    """True where the collective stands in the `finally` of a `try` that the exit stands in: who leaves comes there, too."""
    below: ast.AST = mismatch.meeting.node
    for up in module.ancestors(below):
        if isinstance(up, (ast.Try, ast.TryStar)) and any(s is below for s in up.finalbody):
            return up.lineno < mismatch.leaves < up.finalbody[0].lineno
        below = up
    return False


def _guard(project: Project, module: SourceModule, meeting: Meeting) -> Guard | None:
    return next((g for g in guards_over(module, meeting.node, project=project) if g.ranks in SHOWN), None)


def _words(module: SourceModule, guard: Guard) -> str:
    if guard.kind == "exit":
        return f"the early exit in line {guard.line}"
    test = getattr(guard.node, "test", guard.node)
    return f"`{' '.join(module.text_of(test).split())}`"


# Right after all


def is_paired(project: Project, module: SourceModule, site: Guarded) -> bool:
    """True where every rank meets as much, whatever the guard round one collective looks like."""
    if site.collective.name in PENDING or site.collective.writes_its_part or site.guard.kind == "decorator":
        return False
    made = pairing(project, module, site.function)
    if made.sure and not made.left_over and _is_read(project, module, site):
        return True
    side = Side.ZERO if site.guard.ranks.name in ("ZERO", "LOCAL_ZERO") else Side.OTHER
    name = "barrier" if site.collective.waits_only else site.collective.name
    return settled_by_callers(project, module, site.function, side, name)


def _is_read(project: Project, module: SourceModule, site: Guarded) -> bool:
    """True where the check knows the collective: in one of the two ways through the function."""
    return any(
        m.node is site.node for side in Side for m in meetings(trace_of(project, module, site.function, side).items)
    )


def settled_by_callers(
    project: Project, module: SourceModule, function: FunctionNode | None, side: Side, name: str
) -> bool:
    """True where each caller in the project has the other half: `write(); if rank != 0: dist.barrier()`."""
    if function is None or called_by_framework(project, module, function) is not None:
        return False
    sites = calls_of(project, module, function) or ()
    return bool(sites) and all(_settles(project, s.module, s.call, side, name) for s in sites)


def _settles(project: Project, module: SourceModule, call: ast.Call, side: Side, name: str) -> bool:
    caller = module.function_of(call)
    if any(m.meeting.node is call for m in mismatches(project, module, caller)):
        return False
    mine = {m.key for m in meetings(trace_of(project, module, caller, side).items)}
    theirs = meetings(trace_of(project, module, caller, side.turned).items)
    return any(m.key not in mine and m.name == name and m.node is not call for m in theirs)


# Both ways


def both_ways(module: SourceModule, found: Unmatched) -> Iterator[Evidence]:
    """The way of those who meet it, then the way of the others, each as file and line."""
    mismatch = found.mismatch
    role = PathRole.LEAVES if mismatch.leaves else PathRole.BEHIND if found.by_exit else PathRole.UNDER
    step = PathStep(role, found.why.strip("`"), mismatch.side.value)
    yield Evidence("static", f"{mismatch.side.value}: {found.why}", module.path, found.at, step=step)
    yield from steps_shown(mismatch.meeting.steps)
    yield from other_way(module, mismatch, found.function, found.at)


def steps_shown(steps: tuple[Step, ...], end: PathRole = PathRole.WAITS) -> Iterator[Evidence]:
    """The calls that lead to a collective, and at last the collective, which is an `end`."""
    for step in steps:
        shown = PathStep(end if step is steps[-1] else PathRole.CALLS, step.text)
        yield Evidence("static", step.text, step.path, step.line, step=shown)


def other_way(
    module: SourceModule, mismatch: Mismatch | None, function: FunctionNode | None, at: int
) -> Iterator[Evidence]:
    """Where the ranks go that do not meet it."""
    who = mismatch.side.turned.value if mismatch else Side.OTHER.value
    if mismatch is not None and mismatch.other is not None:
        text = mismatch.other.steps[0].text
        yield Evidence("static", f"{who} meet instead: {text}", module.path, at, step=PathStep(PathRole.INSTEAD, text, who))
        yield from steps_shown(mismatch.other.steps)
        return
    end = function.end_lineno if function is not None and function.end_lineno else len(module.lines)
    place = f"the end of {function.name}" if function is not None else "the end of the file"
    yield Evidence("static", f"{who} come to {place} without it", module.path, end, step=PathStep(PathRole.ENDS, place, who))
