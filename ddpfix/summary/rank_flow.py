"""Which rank goes where: the evidence of a finding as two lanes that run down a page, and those as plain text.

Plain lanes in a fence and not a Mermaid graph: they read the same in a terminal, in a commit and on any forge.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from codemods.api.findings import Evidence, Finding, PathRole, PathStep
from ddpfix.summary.lanes import Flow, Kind, Stop
from ddpfix.summary.value_way import way_of

WIDTH = 84  # of the words beside the lanes
_PARTINGS = (PathRole.UNDER, PathRole.WITHIN, PathRole.BEHIND, PathRole.LEAVES)
_TURNS = (PathRole.INSTEAD, PathRole.ENDS)


def flow_of(finding: Finding) -> Flow | None:
    """The lanes behind a finding, None where its evidence shows no two ways."""
    if (way := way_of(finding)) is not None:
        return way
    shown = [(e, e.step) for e in finding.evidence if e.step is not None]
    if shown and shown[0][1].role in _PARTINGS:
        return _call_flow(shown)
    return _file_flow(shown) if shown and shown[0][1].role is PathRole.WRITES else None


def _call_flow(shown: Sequence[tuple[Evidence, PathStep]]) -> Flow | None:
    """A collective that some ranks come to, and the others do not."""
    turn = next((i for i, (_, step) in enumerate(shown) if step.role in _TURNS), 0)
    if turn < 2:
        return None
    first = shown[0][1]
    who = first.who.replace("the ranks other than", "ranks other than").removeprefix("the ")
    passing = who.startswith(("rank 0", "local rank 0"))
    others = "other ranks" if passing else "local rank 0" if "local" in who else "rank 0"
    *calls, (met, collective) = shown[1:turn]
    waits = collective.role is not PathRole.OWN_PART
    waiting = f"{who} {_s('wait', who)} here for {others}" if waits else f"{who} alone leaves its part here"
    stops = [_stop(Kind.PARTS, 0, shown[0][0], _guard(first), _parting(first, who, others))]
    stops += [_stop(Kind.CALLS, 0, e, step.what) for e, step in calls]
    stops.append(_stop(Kind.WAITS if waits else Kind.ALONE, 0, met, collective.what, waiting))
    end, last = shown[turn]
    if last.role is PathRole.INSTEAD:
        *more, (other, there) = shown[turn + 1 :] or [(end, last)]
        stops += [_stop(Kind.CALLS, 1, e, step.what) for e, step in more]
        note = f"{others} {_s('wait', others)} here: each call is taken for the other"
        stops.append(_stop(Kind.WAITS, 1, other, there.what, note))
    else:
        stops.append(_stop(Kind.ENDS, 1, end, last.what, f"{others} {_s('come', others)} here without it"))
    return Flow((who, others), tuple(stops))


def _file_flow(shown: Sequence[tuple[Evidence, PathStep]]) -> Flow | None:
    """A file that rank 0 writes, and that every rank uses without waiting for it."""
    (write, written), *leading, (use, used) = shown
    if used.role is not PathRole.USES:
        return None
    stops = [_stop(Kind.WRITES, 0, write, written.what, "rank 0 alone")]
    stops += [_stop(Kind.CALLS, 0, e, step.what, "leads there") for e, step in leading]
    stops.append(Stop(Kind.MISSING, 0, "no barrier", "nobody waits for rank 0 here"))
    stops.append(_stop(Kind.USES, 1, use, used.what, "every rank; the other ranks may be here first"))
    return Flow(("rank 0", "other ranks"), tuple(stops))


def _stop(kind: Kind, lane: int, evidence: Evidence, text: str, note: str = "") -> Stop:
    return Stop(kind, lane, text, note, evidence.path, evidence.line)


def _guard(first: PathStep) -> str:
    """The test, as code; nothing where the ranks part by an exit, which the note speaks of."""
    if first.role in (PathRole.BEHIND, PathRole.LEAVES):
        return ""
    return first.what if first.role is PathRole.UNDER else f"in {first.what}"


def _parting(first: PathStep, who: str, others: str) -> str:
    if first.role is PathRole.LEAVES:
        return f"{others} may leave here"
    if first.role is PathRole.BEHIND:
        return f"{others} {_s('leave', others)} here"
    return f"{who} {_s('go', who)} in, {others} {_s('pass', others)} by"


def _s(verb: str, who: str) -> str:
    if "ranks" in who:
        return verb
    return verb + ("es" if verb in ("go", "pass") else "s")


# As plain text

# two lanes of one column each, three columns apart
_ROWS = {
    (Kind.PARTS, 0): ("◆───╮", "│   ┆"),
    (Kind.CALLS, 0): ("●   ┆", "│   ┆"),
    (Kind.CALLS, 1): ("    ●", "    ┆"),
    (Kind.WAITS, 0): ("■╌╌╌┆", "    ┆"),
    (Kind.WAITS, 1): ("    ■", ""),
    (Kind.ALONE, 0): ("●╌╌╌┆", "│   ┆"),
    (Kind.ENDS, 1): ("    ▼", ""),
    (Kind.WRITES, 0): ("●   │", "│   │"),
    (Kind.MISSING, 0): ("╌╌╌╌╌", "│   │"),
    (Kind.USES, 1): ("●   ●", ""),
    (Kind.VALUE, 0): ("●   ○", "│   │"),
    (Kind.SHOWS, 0): ("■   ╵", ""),
}


def drawn(flow: Flow) -> list[str]:
    """The lanes as lines of text, with what happens at each stop beside it."""
    out = [f"{flow.lanes[0]} | {flow.lanes[1]}", "│   │"]
    files = flow.stops[0].kind is Kind.WRITES
    for stop in flow.stops:
        mark, below = _ROWS[stop.kind, stop.lane]
        if files and stop.kind is Kind.CALLS:
            mark, below = "●   │", "│   │"
        words = [text for text in (f"{stop.place}  {stop.text}".strip(), stop.note) if text]
        rows = [row for text in words for row in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]
        out += [f"{lane:<5}   {row}".rstrip() for lane, row in zip([mark, *[below] * (len(rows) - 1)], rows, strict=True)]
    return out
