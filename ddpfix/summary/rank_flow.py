"""Which rank goes where: the evidence of a finding as two lanes that run down a page, and those as plain text.

Plain lanes in a fence and not a Mermaid graph: they read the same in a terminal, in a commit and on any forge.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from codemods.api.findings import Evidence, Finding
from ddpfix.summary.lanes import Flow, Kind, Stop
from ddpfix.summary.value_way import way_of

CODES = ("DDP301", "DDP302", "DDP303")
WIDTH = 84  # of the words beside the lanes
_PASSES = re.compile(r"only (?P<who>.+?) passes (?P<where>under|behind|in) (?P<what>.+)")
_SIDE = re.compile(r"(?P<who>rank 0|the other ranks): (?P<what>.+)")
_LEAVES = re.compile(r"(?P<who>rank 0|the other ranks) may leave in line \d+")
_WITHOUT = re.compile(r"(?P<who>rank 0|the other ranks) come to (?P<what>.+) without it")
_INSTEAD = re.compile(r"(?P<who>rank 0|the other ranks) meet instead: (?P<what>.+)")
_WRITES = re.compile(r"(?P<what>.+) on rank 0 alone")
_LEADS = re.compile(r"(?P<what>.+) leads there")
_USES = re.compile(r"(?P<what>.+) on every rank")


def flow_of(finding: Finding) -> Flow | None:
    """The lanes behind a finding, None where its evidence tells of no two ways."""
    if (way := way_of(finding)) is not None:
        return way
    if finding.code not in CODES or len(finding.evidence) < 2:
        return None
    if finding.code == "DDP302":
        return _file_flow(finding.evidence)
    return _call_flow(finding.evidence, waits="saves the random state" not in finding.message)


def _call_flow(evidence: Sequence[Evidence], waits: bool) -> Flow | None:
    """A collective that some ranks come to, and the others do not."""
    first = _PASSES.fullmatch(evidence[0].text) or _SIDE.fullmatch(evidence[0].text)
    turn = next((i for i, e in enumerate(evidence) if _WITHOUT.fullmatch(e.text) or _INSTEAD.fullmatch(e.text)), 0)
    if first is None or turn < 2:
        return None
    who = first["who"].replace("the ranks other than", "ranks other than").removeprefix("the ")
    passing = who.startswith(("rank 0", "local rank 0"))
    others = "other ranks" if passing else "local rank 0" if "local" in who else "rank 0"
    *calls, met = evidence[1:turn]
    waiting = f"{who} {_s('wait', who)} here for {others}" if waits else f"{who} alone leaves its part here"
    stops = [_stop(Kind.PARTS, 0, evidence[0], _guard(first), _parting(first, who, others))]
    stops += [_stop(Kind.CALLS, 0, e, e.text, "") for e in calls]
    stops.append(_stop(Kind.WAITS if waits else Kind.ALONE, 0, met, met.text.removesuffix(" waits for all ranks"), waiting))
    end = evidence[turn]
    if instead := _INSTEAD.fullmatch(end.text):
        *more, other = evidence[turn + 1 :] or [end]
        stops += [_stop(Kind.CALLS, 1, e, e.text, "") for e in more]
        text = other.text if other is not end else instead["what"]
        stops.append(_stop(Kind.WAITS, 1, other, text, f"{others} {_s('wait', others)} here: each call is taken for the other"))
    else:
        without = _WITHOUT.fullmatch(end.text)
        note = f"{others} {_s('come', others)} here without it"
        stops.append(_stop(Kind.ENDS, 1, end, without["what"] if without else "", note))
    return Flow((who, others), tuple(stops))


def _file_flow(evidence: Sequence[Evidence]) -> Flow | None:
    """A file that rank 0 writes, and that every rank uses without waiting for it."""
    writes, uses = _WRITES.fullmatch(evidence[0].text), _USES.fullmatch(evidence[-1].text)
    if writes is None or uses is None:
        return None
    stops = [_stop(Kind.WRITES, 0, evidence[0], writes["what"], "rank 0 alone")]
    stops += [_stop(Kind.CALLS, 0, e, m["what"], "leads there") for e in evidence[1:-1] if (m := _LEADS.fullmatch(e.text))]
    stops.append(Stop(Kind.MISSING, 0, "no barrier", "nobody waits for rank 0 here"))
    stops.append(_stop(Kind.USES, 1, evidence[-1], uses["what"], "every rank; the other ranks may be here first"))
    return Flow(("rank 0", "other ranks"), tuple(stops))


def _stop(kind: Kind, lane: int, evidence: Evidence, text: str, note: str) -> Stop:
    return Stop(kind, lane, text, note, evidence.path, evidence.line)


def _guard(first: re.Match[str]) -> str:
    """The test, as code; nothing where the ranks part by an exit, which the note tells of."""
    if first.groupdict().get("where") == "behind" or _LEAVES.fullmatch(first["what"]):
        return ""
    where = first.groupdict().get("where") or "under"
    return first["what"].strip("`") if where == "under" else f"{where} {first['what']}".replace("`", "")


def _parting(first: re.Match[str], who: str, others: str) -> str:
    if _LEAVES.fullmatch(first["what"]):
        return f"{others} may leave here"
    if first.groupdict().get("where") == "behind":
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
