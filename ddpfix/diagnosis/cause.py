"""From what a log holds to its probable cause: which message began it, which rank fell first, what the others only echo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddpfix.diagnosis.log import Exit, Hit, Log
from ddpfix.diagnosis.messages import Ranks, Role
from ddpfix.diagnosis.tracebacks import Crash

BELOW = 8  # lines under the head of an error that still belong to it
PASSED_ON = ("ChildFailedError", "SignalException", "KeyboardInterrupt", "ProcessRaisedException", "ProcessExitedException")
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log comes to.

    cause: the message that names the probable cause, None where none does. failed: whether the run failed at all. first: the
    first rank's own failure, None where only echoes or none are there. waiting: where ranks waited in vain, one for each.
    parameters, indices: those without a gradient. others: the other messages, one of each kind. exits: how the ranks ended.
    fell: ranks that failed by themselves in logs of their own, of which none says who was first; empty where one is.
    """

    log: Log
    cause: Hit | None
    failed: bool
    first: Crash | None = None
    waiting: tuple[Crash, ...] = ()
    parameters: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    others: tuple[Hit, ...] = ()
    exits: tuple[Exit, ...] = ()
    fell: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        return self.cause is not None

    @property
    def rank(self) -> int | None:
        """The rank that fell first, as far as the log tells."""
        if self.fell:
            return next((e.rank for e in self.exits if e.root), None)
        if self.first is not None and self.first.rank is not None:
            return self.first.rank
        if self.cause is not None and self.cause.rank is not None and self.cause.message.role is not Role.WARNING:
            return self.cause.rank
        return next((e.rank for e in self.exits if e.root), None) if self.failed else None

    @property
    def codes(self) -> tuple[str, ...]:
        return self.cause.message.codes if self.cause is not None else ()


def diagnose(log: Log) -> Diagnosis:
    """The probable cause.

    The first rank with a traceback of its own is the culprit, whatever others print of lost connections; where there is none,
    a message of an error counts, then one of waiting in vain, then an echo, and in a run that did not fail a warning.
    """
    hits = [h for h in log.hits if _counts(h, log)]
    by_crash = {id(c): [h for h in hits if _belongs(h, c)] for c in log.crashes}
    own = _last_of_each_rank([c for c in log.crashes if not _is_echo(c, by_crash[id(c)])])
    stuck = [c for c in own if _roles(by_crash[id(c)]) & {Role.HANG} and not _roles(by_crash[id(c)]) & {Role.ERROR}]
    culprits = [c for c in own if c not in stuck]
    failed = bool(log.crashes or any(e.code for e in log.exits) or _roles(hits) - {Role.WARNING, Role.DETAIL})
    first = culprits[0] if culprits else stuck[0] if stuck else None
    if culprits:
        cause = _most_exact(h for h in by_crash[id(culprits[0])] if h.message.role is Role.ERROR)
    else:
        order = (Role.ERROR, Role.HANG, Role.ECHO) if failed else (Role.WARNING,)
        cause = next((h for role in order for h in hits if h.message.role is role and not _is_summary(h)), None)
    return Diagnosis(
        log=log,
        cause=cause,
        failed=failed,
        first=first,
        waiting=tuple(_one_for_each_rank(stuck)) if not culprits else (),
        parameters=tuple(_names(log.hits)),
        indices=tuple(_indices(log.hits)),
        others=tuple(_others(log.hits, cause)),
        exits=log.exits,
        fell=_unordered(culprits),
    )


def _counts(hit: Hit, log: Log) -> bool:
    """False for an error of Python where the log is one of a single rank, or rank 0 fails the same way."""
    if hit.message.ranks is Ranks.ANY:
        return True
    several = len(log.ranks) > 1 or any(r > 0 for r in log.ranks) or len(log.exits) > 1
    if hit.message.ranks is Ranks.SEVERAL:
        return several
    return several and hit.rank != 0 and not any(h.message is hit.message and h.rank == 0 for h in log.hits)


def _belongs(hit: Hit, crash: Crash) -> bool:
    return hit.file == crash.file and crash.line <= hit.line <= crash.end + BELOW and hit.rank in (crash.rank, None)


def _most_exact(hits: Iterable[Hit]) -> Hit | None:
    """The first that is not vague, else the first."""
    return min(hits, key=lambda h: h.message.vague, default=None)


def _roles(hits: Iterable[Hit]) -> set[Role]:
    return {h.message.role for h in hits}


def _is_echo(crash: Crash, hits: Sequence[Hit]) -> bool:
    """True where the traceback follows from another rank's, or is the launcher's own."""
    roles = _roles(hits)
    launcher = crash.type == "CalledProcessError" and any("accelerate/commands" in f.path for f in crash.frames)
    return launcher or crash.type in PASSED_ON or (Role.ECHO in roles and not roles & {Role.ERROR, Role.HANG})


def _is_summary(hit: Hit) -> bool:
    return hit.message.id in ("R06", "R07")


def _last_of_each_rank(crashes: Sequence[Crash]) -> list[Crash]:
    """What a rank printed before its last traceback it survived. Where no line says whose it is, all may be last ones."""
    last = {c.rank: c for c in crashes}
    return [c for c in crashes if c.rank is None or last[c.rank] is c]


def _unordered(culprits: Sequence[Crash]) -> tuple[int, ...]:
    """The ranks of failures that stand in different files, so that the order of their lines says nothing."""
    several = len({c.file for c in culprits}) > 1
    return tuple(sorted({c.rank for c in culprits if c.rank is not None})) if several else ()


def _one_for_each_rank(crashes: Sequence[Crash]) -> Iterable[Crash]:
    seen: dict[int | None, Crash] = {}
    for crash in crashes:
        seen.setdefault(crash.rank, crash)
    return seen.values()


def _names(hits: Sequence[Hit]) -> Iterable[str]:
    named = [n.strip() for h in hits if h.message.id == "T09" for n in h.get("names").split(",")]
    twice = [h.get("name") for h in hits if h.message.id == "T07" and h.get("name")]
    return dict.fromkeys(n for n in (*named, *twice) if n)


def _indices(hits: Sequence[Hit]) -> Iterable[int]:
    return sorted({int(i) for h in hits if h.message.id == "T08" for i in h.get("indices").split()})


def _others(hits: Sequence[Hit], cause: Hit | None) -> Iterable[Hit]:
    """One hit of every other message, details and the launcher's summary left out."""
    out: dict[str, Hit] = {}
    for hit in hits:
        if hit.message.role is not Role.DETAIL and not _is_summary(hit) and (cause is None or hit.message is not cause.message):
            out.setdefault(hit.message.id, hit)
    return list(out.values())[:_LISTED]
