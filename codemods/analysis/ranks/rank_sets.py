"""Sets of processes as far as a source shows them, and what a test says of them."""

from __future__ import annotations

from enum import Enum

from codemods.runtime.record import record


class Ranks(Enum):
    """A set of processes, as far as the source shows it."""

    ALL = "every rank"
    ZERO = "global rank 0"
    LOCAL_ZERO = "local rank 0 of each node"
    OTHERS = "ranks other than 0"
    LOCAL_OTHERS = "ranks other than local rank 0"
    UNKNOWN = "ranks that the source does not show"

    @property
    def some(self) -> bool:
        """True unless every rank comes here."""
        return self is not Ranks.ALL


@record
class Split:
    """The ranks for which a test can be true, those for which it can be false, and whether ranks alone decide it."""

    true: Ranks
    false: Ranks
    alone: bool = True

    @property
    def turned(self) -> Split:
        return Split(self.false, self.true, self.alone)


_OPPOSITE = {
    Ranks.ZERO: Ranks.OTHERS, Ranks.OTHERS: Ranks.ZERO,
    Ranks.LOCAL_ZERO: Ranks.LOCAL_OTHERS, Ranks.LOCAL_OTHERS: Ranks.LOCAL_ZERO,
}  # fmt: skip


def negated(ranks: Ranks) -> Ranks:
    """The other processes."""
    return _OPPOSITE.get(ranks, Ranks.UNKNOWN)


def both(one: Ranks, other: Ranks) -> Ranks:
    """The processes that two conditions let through together."""
    if one is Ranks.ALL or one is other:
        return other
    if other is Ranks.ALL:
        return one
    pair = {one, other}
    if Ranks.ZERO in pair and not pair & {Ranks.OTHERS, Ranks.LOCAL_OTHERS}:
        return Ranks.ZERO
    if pair == {Ranks.OTHERS, Ranks.LOCAL_OTHERS}:
        return Ranks.LOCAL_OTHERS
    return Ranks.UNKNOWN
