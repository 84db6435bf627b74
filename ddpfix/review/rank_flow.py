"""The lanes of a finding as inline SVG: where things stand; how they are drawn is in rank_flow.svg.j2."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from ddpfix.summary.lanes import Flow, Kind, Stop

LANES = (42, 128)  # x of the two lanes
RAIL = 152  # x of the right one where it goes round
WORDS = 182  # x of the words
LETTERS = 40  # of a line of words
HEAD = 44  # y of the first stop
LINE = 16
GAP = 16
_SHORT = {
    "local rank 0 of each node": "local rank 0",
    "ranks other than 0": "other ranks",
    "ranks other than local rank 0": "others",
    "the others": "others",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stop with its place: x of its mark, y of its first line; code, note and place are its lines of words."""

    stop: Stop
    x: int
    y: int
    code: tuple[str, ...]
    note: tuple[str, ...]
    place: str

    @property
    def kind(self) -> str:
        return self.stop.kind.value

    @property
    def rows(self) -> list[tuple[str, str, int]]:
        """(class, words, y) of each line."""
        texts = [*(("code", t) for t in self.code), *(("note", t) for t in self.note), ("place", self.place)]
        return [(name, text, self.y + 4 + i * LINE) for i, (name, text) in enumerate(texts) if text]


@dataclass(frozen=True, slots=True)
class Picture:
    """What the template draws. parts: y at which the right lane goes round, 0 where it does not; ends: y of each lane's end."""

    names: tuple[str, str]
    stops: tuple[Drawn, ...]
    parts: int
    ends: tuple[int, int]
    height: int
    width: int
    told: str
    lanes: tuple[int, int] = LANES
    rail: int = RAIL
    words: int = WORDS


def picture(flow: Flow) -> Picture:
    """The places of everything in the picture of `flow`."""
    y = HEAD
    stops = []
    parts = 0
    for stop in flow.stops:
        if stop.kind is Kind.PARTS:
            parts = y
        right = RAIL if parts else LANES[1]
        code = tuple(textwrap.wrap(stop.text, LETTERS, break_on_hyphens=False)[:3])
        note = tuple(textwrap.wrap(stop.note, LETTERS)[:3])
        stops.append(Drawn(stop, right if stop.lane else LANES[0], y, code, note, _tail(stop.place)))
        y += LINE * max(len(stops[-1].rows), 1) + GAP
    at = [max((d.y for d in stops if d.stop.lane == lane), default=HEAD) for lane in (0, 1)]
    if not parts:  # both lanes come to the last stop
        at = [stops[-1].y, stops[-1].y]
    elif at[1] < parts:  # no stop of their own for those who leave: they are elsewhere by then
        at[1] = stops[-1].y
    names = (_SHORT.get(flow.lanes[0], flow.lanes[0]), _SHORT.get(flow.lanes[1], flow.lanes[1]))
    widest = max((len(words) * (7.3 if kind == "code" else 6.9) for d in stops for kind, words, _ in d.rows), default=0)
    return Picture(names, tuple(stops), parts, (at[0], at[1]), y, WORDS + round(widest), _told(flow))


def _tail(place: str) -> str:
    """The end of a long path: it is the file and the line that one looks for."""
    return place if len(place) <= LETTERS else "…" + place[-LETTERS + 1 :]


def _told(flow: Flow) -> str:
    """The picture in words, for those who do not see it."""
    stops = [(s.text, s.note and f"({s.note})", s.place and f"in {s.place}") for s in flow.stops]
    return "; ".join(" ".join(part for part in parts if part) for parts in stops)
