"""What became of each decision: made, needless, rejected, not decided, or of a finding that is not there."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.api.findings import Finding
from codemods.runtime.record import record, replace
from ddpfix.decisions import Decision, Decisions
from ddpfix.results import Fixed

MOST = 6


@record
class Decided:
    """A run by decisions. Findings are as they were found before anything was fixed.

    needless: accepted, and repaired by another accepted fix. without_fix: accepted, though there is nothing to accept. gone: ids
    that name nothing here, those that were accepted first. decided_on: the commit of the decisions where HEAD is another.
    """

    accepted: tuple[Finding, ...] = ()
    edited: tuple[Finding, ...] = ()
    rejected: tuple[tuple[Finding, str], ...] = ()
    undecided: tuple[Finding, ...] = ()
    needless: tuple[Finding, ...] = ()
    without_fix: tuple[Finding, ...] = ()
    gone: tuple[str, ...] = ()
    gone_accepted: int = 0
    decided_on: str = ""
    base: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reviewer must know, a line each."""
        out = []
        if self.decided_on:
            stand = "all of them still stand" if not self.gone else f"{_few(self.gone, 'decision')} dropped: found no more"
            out.append(f"stale: decided on {self.decided_on[:12]}, HEAD is {self.base[:12]}; {stand}")
        elif self.gone:
            out.append(f"{_few(self.gone, 'decision')} dropped: no such finding here")
        if self.needless:
            out.append(f"accepted, and repaired by another accepted fix: {places(self.needless)}")
        if self.without_fix:
            out.append(f"accepted, but there is no fix to make: {places(self.without_fix)}")
        return tuple(out)


def decided(fixed: Fixed, decisions: Decisions, base: str = "") -> Decided:
    """What `fixed`, made by these decisions on the commit `base`, made of each of them."""
    found = {f.id: f for f in fixed.first}
    of = {key: d for key, d in decisions.of.items() if key in found}
    accepted = tuple(f for f in fixed.first if _is(of, f.id, "accept"))
    kept = {origin(fixed, f) for f in (*fixed.fixed, *fixed.left, *(f for f, _ in fixed.withdrawn))}
    gone = [key for key in decisions.of if key not in found]
    first = [key for key in gone if decisions.verdict(key) == "accept"]
    return Decided(
        accepted=tuple(f for f in accepted if f.fix),
        edited=tuple(f for f in accepted if of[f.id].edited),
        rejected=tuple((f, of[f.id].reason) for f in fixed.first if _is(of, f.id, "reject")),
        undecided=tuple(f for f in fixed.left if f.fix and origin(fixed, f) not in of),
        needless=tuple(f for f in accepted if f.fix and f.id not in kept),
        without_fix=tuple(f for f in accepted if not f.fix),
        gone=(*first, *(key for key in gone if key not in first)),
        gone_accepted=len(first),
        decided_on=decisions.base if base and decisions.base and decisions.base != base else "",
        base=base,
    )


def without_decided(fixed: Fixed, made: Decided) -> Fixed:
    """For a reader who is told of the decisions beside it: what was left by decision is no longer among what is left."""
    by_decision = {f.id for f, _ in made.rejected} | {f.id for f in made.undecided}
    left = tuple(f for f in fixed.left if f.id not in by_decision and origin(fixed, f) not in by_decision)
    return replace(fixed, left=left)


def origin(fixed: Fixed, finding: Finding) -> str:
    """The id under which a finding was there before anything was fixed."""
    return fixed.origins.get(finding.id, finding.id)


def places(findings: Sequence[Finding]) -> str:
    return _listed([f"{f.place} {f.code}" for f in findings])


def _is(of: dict[str, Decision], key: str, verdict: str) -> bool:
    return key in of and of[key].verdict == verdict


def _few(ids: Sequence[str], noun: str) -> str:
    were = "is" if len(ids) == 1 else "are"
    return f"{len(ids)} {noun}{'' if len(ids) == 1 else 's'} ({_listed(ids)}) {were}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
