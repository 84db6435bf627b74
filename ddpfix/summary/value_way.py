"""The way of a value that is not the same on all ranks, from where it comes from to what it decides over, as lanes."""

from __future__ import annotations

from itertools import takewhile

from codemods.api.findings import Evidence, Finding
from ddpfix.summary.lanes import Flow, Kind, Stop

WAY = "way"  # the kind of evidence that is one step of it, nearest first


def way_of(finding: Finding) -> Flow | None:
    """The lanes of a finding whose evidence begins with the way of a value; None for any other."""
    way = tuple(takewhile(lambda e: e.kind == WAY, finding.evidence))
    if not way:
        return None
    stops = [_step(e) for e in reversed(way)]
    then = finding.evidence[len(way) :]
    if not then:
        shown = Stop(Kind.SHOWS, 0, "", "only this rank's own goes on from here", finding.path, finding.span.line)
        return Flow(("one rank", "the others"), (*stops, shown))
    stops.append(Stop(Kind.PARTS, 0, "", "each rank decides for itself here", finding.path, finding.span.line))
    *calls, met = then
    stops += [Stop(Kind.CALLS, 0, e.text, "", e.path, e.line) for e in calls]
    stops.append(Stop(Kind.WAITS, 0, met.text, "these wait here for the others", met.path, met.line))
    return Flow(("some ranks", "the others"), tuple(stops))


def _step(evidence: Evidence) -> Stop:
    """A step that is a statement as it is written shows as code."""
    code = evidence.text.startswith("`") and evidence.text.endswith("`")
    text, note = (evidence.text[1:-1], "") if code else ("", evidence.text)
    return Stop(Kind.VALUE, 0, text, note, evidence.path, evidence.line)
