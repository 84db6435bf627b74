"""May a `self.log` call be given `sync_dist=True`, beside the other calls that log its key?

A method may log one key thousands of times, so what the others are is worked out once for all of them, not for each pair.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence

from codemods.analysis.logged.exclusive_arms import never_in_one_run
from codemods.analysis.logged.log_calls import LogCall
from codemods.analysis.logged.log_twins import Same, twins
from codemods.analysis.logged.sync_judgement import judge_alone
from codemods.analysis.logged.verdict import Verdict
from codemods.api.findings import Applicability

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY
Doubt = tuple[int, LogCall, str]  # its place, the call, what it says of its twins
_DIFFERENT = "logs the same key in the same hook, and Lightning refuses two calls with different options"


def judge(log: LogCall) -> Verdict | None:
    """The verdict on a call; None where it needs no reduction over the ranks, or where somebody has decided already."""
    verdict = judge_alone(log)
    if verdict is None or verdict.level is DISPLAY:
        return verdict
    before, same = verdict.level, twins(log)
    if verdict.sync_dist != "True" and _differs(log, verdict, same):
        verdict.sync_dist = "True"
        verdict.lower(UNSAFE, "another call of the method logs the key in each training step, and both need the same options")
    for level in (DISPLAY, UNSAFE):  # the lowest level decides, and of its reasons two are told
        for _, twin, reason in heapq.merge(*(_doubts(one)[level] for one in same), key=_place):
            if verdict.level is level and len(verdict.reasons) > 1:
                break
            if twin.call is not log.call and not never_in_one_run(log, twin):
                verdict.lower(level, reason)
        if verdict.level is level:
            break
    if verdict.level is not before:
        _note_lowered(log, before, verdict.level, same)
    return verdict


def _differs(log: LogCall, verdict: Verdict, same: Sequence[Same]) -> bool:
    """True where another call of the key in one run would be given another `sync_dist`."""
    others = (twin for one in same for _, twin in one.logs.values() if twin.call is not log.call)
    for twin in others:
        alone = judge_alone(twin)
        if (alone is None or alone.sync_dist != verdict.sync_dist) and not never_in_one_run(log, twin):
            return True
    return False


def _doubts(same: Same) -> dict[Applicability, list[Doubt]]:
    """The calls that make a change of their twins less sure, by the level they leave, in their order."""
    project = next(iter(same.logs.values()))[1].project
    if len({twin.module.path for _, twin in same.logs.values()}) > 1:
        project.order_counts()  # which of the files is judged first
    return same.once("doubts", lambda: _found_doubts(same))


def _found_doubts(same: Same) -> dict[Applicability, list[Doubt]]:
    out: dict[Applicability, list[Doubt]] = {DISPLAY: [], UNSAFE: []}
    for place, twin in same.logs.values():
        where = f"{twin.module.path}:{twin.call.lineno}"
        if any(k.arg == "sync_dist" for k in twin.call.keywords):
            why = "logs the same key with sync_dist: right if leaving it out here was not meant"
            out[UNSAFE].append((place, twin, f"{where} {why}"))
            continue
        alone = judge_alone(twin)
        if (level := alone.level if alone is not None else DISPLAY) is not SAFE:
            out[level].append(_refused(place, twin))
    return out


def _note_lowered(log: LogCall, before: Applicability, level: Applicability, same: Sequence[Same]) -> None:
    """A call whose level has fallen makes its twins less sure in its turn."""
    for one in same:
        if own := one.logs.get(log.call):
            doubts = _doubts(one)
            if before is not SAFE:
                del doubts[before][bisect.bisect_left(doubts[before], own[0], key=_place)]
            bisect.insort(doubts[level], _refused(*own), key=_place)


def _refused(place: int, twin: LogCall) -> Doubt:
    return place, twin, f"{twin.module.path}:{twin.call.lineno} {_DIFFERENT}: both need sync_dist=True, or neither"


def _place(doubt: Doubt) -> int:
    return doubt[0]
