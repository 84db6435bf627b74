"""Two lanes that run down a page, for the ranks that go two ways, and what happens at each stop of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What happens at a stop."""

    PARTS = "parts"  # the ranks go two ways from here
    CALLS = "calls"  # the first lane goes on to what it comes to
    WAITS = "waits"  # a collective that only this lane comes to
    ALONE = "alone"  # one that takes a part from each rank, but waits for nobody
    ENDS = "ends"  # where the other lane goes without it
    WRITES = "writes"
    MISSING = "missing"  # a collective that should stand here
    USES = "uses"  # every rank is here, too early
    VALUE = "value"  # each rank has its own from here on
    SHOWS = "shows"  # this lane goes by its own


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of one lane: 0 is the left one, 1 the right one. text: code; note: what happens there, in words."""

    kind: Kind
    lane: int
    text: str
    note: str
    path: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class Flow:
    """Two lanes, by the ranks in them, and their stops from the top to the bottom."""

    lanes: tuple[str, str]
    stops: tuple[Stop, ...]
