"""The words for collectives that only some ranks reach: the message, and both ways as evidence."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.guards.guard_place import Repair
from codemods.analysis.guards.guarded_collectives import Guarded, guarded_collectives, later_collective
from codemods.analysis.guards.no_group_at import no_group_at
from codemods.analysis.guards.old_save_state import harm_of_all, loses_little
from codemods.analysis.guards.unmatched_collectives import Unmatched, is_paired, other_way, steps_shown
from codemods.analysis.ranks.collectives import AFTER_EVALUATION, PENDING
from codemods.analysis.ranks.matching import Mismatch, mismatches
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.trace_items import Side
from codemods.api.findings import Applicability, Evidence, PathRole, PathStep
from codemods.files.source import SourceModule
from codemods.store.project import Project

_WHO = {
    Ranks.ZERO: "rank 0", Ranks.LOCAL_ZERO: "local rank 0 of each node",
    Ranks.OTHERS: "the ranks other than 0", Ranks.LOCAL_OTHERS: "the ranks other than local rank 0",
}  # fmt: skip


def guarded_here(project: Project, module: SourceModule) -> list[Guarded]:
    """The guarded collectives of a file that no partner meets, but can: a group is there, and more is lost than a little."""
    found = (site for site in guarded_collectives(project, module) if not is_paired(project, module, site))
    found = (site for site in found if not no_group_at(project, module, site.node))
    return [s for s in found if not (s.collective.writes_its_part and loses_little(project, module, s.function))]


def grouped(found: Sequence[Guarded]) -> list[list[Guarded]]:
    """Sites by guard; calls that come to `save_state` by function: a training script has one at each of its exits."""
    groups: dict[tuple[object, ...], list[Guarded]] = {}
    for site in found:
        by_function = site.reached is not None and site.collective.writes_its_part
        key = ("function", id(site.function)) if by_function else (site.guard.kind, id(site.guard.node), site.reached is None)
        groups.setdefault(key, []).append(site)
    return list(groups.values())


def reason(made: Repair) -> str:
    return made.reason if made.level is not Applicability.SAFE or not made.edits else ""


def message(project: Project, module: SourceModule, sites: list[Guarded]) -> str:
    site = sites[0]
    who = _WHO[site.guard.ranks]
    where = guard_text(module, site)
    also = f" (so do lines {', '.join(str(s.node.lineno) for s in sites[1:])})" if len(sites) > 1 else ""
    if site.collective.writes_its_part:
        hangs = "" if harm_of_all(project, module) else ", and DeepSpeed or FSDP would hang"
        loaded = bool(project.files_containing(b".load_state("))  # measured: without a file a rank keeps the state that it has
        lost = "after a resume the other ranks go on with other random numbers" if loaded else "the checkpoint lacks the others'"
        return (
            f"{site.text} saves the random state of each process that calls it, and {where} only {who} does{also}: {lost}{hangs}"
        )
    if site.collective.name in PENDING:
        evaluated = site.function is not None and site.function.name in AFTER_EVALUATION
        logged = ", those of values logged in this hook, by a callback before it or, in the sanity check, by the validation steps"
        which = logged if evaluated else ""
        then = later_collective(project, module, site)
        next_one = f"{then.text} in line {then.node.lineno}" if then else "the next collective"
        return (
            f"reading {site.text} runs the reductions that are still pending{which}, and {where} only {who} does{also}; "
            f"the other ranks are at {next_one} by then: a hang, or mixed-up values"
        )
    if site.collective.is_read:
        return f"reading {site.text} is a collective, and {where} only {who} does{also}: {who} waits for the other ranks"
    return f"{site.text} waits for every rank, but {where} only {who} gets there{also}: the run hangs"


def guard_text(module: SourceModule, site: Guarded) -> str:
    role, what = _parting(module, site)
    if role is PathRole.UNDER:
        return f"under `{what}`"
    return f"in the other branch of `{what}`" if site.guard.kind == "else" else f"{role.value} {what}"


def _parting(module: SourceModule, site: Guarded) -> tuple[PathRole, str]:
    """Where the ranks part: the test, as code, or the place in words."""
    guard = site.guard
    if guard.kind == "decorator":
        return PathRole.WITHIN, f"the decorated {getattr(guard.node, 'name', 'function')}"
    if guard.kind == "exit":
        return PathRole.BEHIND, f"the early exit in line {guard.line}"
    test = getattr(guard.node, "test", None)
    text = " ".join(module.text_of(test).split()) if isinstance(test, ast.expr) else "the rank test"
    if isinstance(guard.node, ast.Match):
        text = f"match {' '.join(module.text_of(guard.node.subject).split())}"
    return PathRole.WITHIN if guard.kind == "else" else PathRole.UNDER, text


def paths(project: Project, module: SourceModule, site: Guarded) -> Iterator[Evidence]:
    """Both ways, each as file and line: that of the ranks that pass, and that of the others."""
    who = _WHO[site.guard.ranks]
    role, what = _parting(module, site)
    other_branch = f"the other branch of {what}" if site.guard.kind == "else" else what
    parting = PathStep(role, other_branch, who)
    yield Evidence("static", f"only {who} passes {guard_text(module, site)}", module.path, site.guard.line, step=parting)
    end = PathRole.OWN_PART if site.collective.writes_its_part else PathRole.WAITS
    if site.reached is None:
        step = PathStep(end, site.text)
        yield Evidence("static", f"{site.text} waits for all ranks", module.path, site.node.lineno, step=step)
    else:
        yield from steps_shown(site.reached.steps, end)
    known = next((m for m in mismatches(project, module, site.function) if m.meeting.node is site.node), None)
    at = getattr(site.guard.node, "end_lineno", None) or site.guard.line
    yield from other_way(module, known, site.function, at)


def message_of_unmatched(found: Unmatched) -> str:
    mismatch = found.mismatch
    who, others = mismatch.side.value, mismatch.side.turned.value
    if mismatch.other is not None:
        there = mismatch.other.steps[0]
        return (
            f"{who} come{_s(mismatch)} to {found.text} where {others} come to {there.text} in line {there.line}: the ranks take "
            "each other's call for their own, and hang or get garbage"
        )
    if mismatch.leaves:
        return f"{found.text} waits for every rank, but {found.why}: those that stay hang"
    if found.in_turn:
        return (
            f"{found.text} waits for every rank, but {found.why} lets the ranks in one after the other: rank 0 waits inside for "
            "those that wait outside"
        )
    return f"{found.text} waits for every rank, but by {found.why} only {who} come{_s(mismatch)} to it: the run hangs"


def _s(mismatch: Mismatch) -> str:
    return "s" if mismatch.side is Side.ZERO else ""


def cure(found: Unmatched) -> str:
    """What to do by hand where the ranks part in another way than by a plain guard."""
    if found.mismatch.other is not None:
        return "make the same collectives in the same order on every rank"
    if found.in_turn:
        return "the ranks enter the block one after the other: make the collective behind it"
    return "make the call on every rank, and keep only the output under the test"
