"""By which power of the number of processes is a number off from what it stands for? Worked out as one works out units.

With W processes a count over the own share is of power -1 (a W-th of the whole), a sum over the ranks multiplies by W, a division
by a count of power -1 as well. What comes out with power 0 is right for any W, whatever way it took.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace


@record
class At:
    """A place in the source."""

    module: SourceModule
    node: ast.expr | ast.stmt

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def text(self) -> str:
        text = " ".join(self.module.text_of(self.node).split())
        return text if len(text) <= 60 else text[:57] + "..."


@record
class Scale:
    """power: of the number of processes. open: how often the number of items of something enters, that is not known yet.

    constant: it is written out. own: a count of the rank's own items. joined: the reduction over the ranks. averaged: that one
    averages. counted: where what was joined is divided by a count of the own share. shared: a division by the number of
    processes. ratio: a quotient whose divisor is what the rank's own data make it; uneven: where such quotients are joined, and
    divided: one of them. content: what the batches hold goes into it, not only how many there are. average: it is divided by a
    count, or a mean.
    """

    power: int = 0
    open: tuple[tuple[str, int], ...] = ()
    constant: bool = False
    own: bool = False
    joined: At | None = None
    averaged: bool = False
    counted: At | None = None
    shared: At | None = None
    ratio: At | None = None
    uneven: At | None = None
    divided: At | None = None
    content: bool = False
    average: bool = False


@record
class Items:
    """Several numbers of one kind: what one of them is, and how many there are."""

    element: Number
    count: Scale | None


@record
class Parts:
    """Numbers under keys that are written out: of a dict, or of a tuple."""

    entries: tuple[tuple[object, Number], ...]

    def get(self, key: object) -> Number:
        return next((value for name, value in self.entries if name == key), None)


Number = Scale | Items | Parts | None
CONSTANT = Scale(constant=True)
PROCESSES = Scale(1)
_NONE: tuple[tuple[str, int], ...] = ()


def mapped(number: Number, change: Callable[[Scale], Scale | None]) -> Number:
    """The number with each of its scales changed."""
    if isinstance(number, Scale):
        return change(number)
    if isinstance(number, Items):
        return Items(mapped(number.element, change), number.count)
    if isinstance(number, Parts):
        return Parts(tuple((key, mapped(value, change)) for key, value in number.entries))
    return None


def times(one: Scale, other: Scale) -> Scale:
    """A quotient that is multiplied by a count is a sum again."""
    weighted = not (one.constant or other.constant or other == PROCESSES or one == PROCESSES)
    both = _both(one, other, 1)
    return replace(both, ratio=None) if weighted else both


def over(at: At, one: Scale, other: Scale, *, by_data: bool) -> Scale:
    """by_data: the divisor is what the rank's own data make it."""
    found = replace(_both(one, other, -1), own=False, average=one.average or (not other.constant and other != PROCESSES))
    counts = (other.own or other.power < 0 or bool(other.open)) and not other.constant and other.joined is None
    if one.joined is not None and counts:
        found = replace(found, counted=at)
    if other.power > 0 and other.joined is None:
        found = replace(found, shared=at)
    if one.joined is None and counts and by_data and not one.constant:
        found = replace(found, ratio=at)
    return found


def _both(one: Scale, other: Scale, sign: int) -> Scale:
    return Scale(
        one.power + sign * other.power,
        _entered(one.open, other.open, sign),
        one.constant and other.constant,
        one.own or other.own,
        one.joined or other.joined,
        one.averaged or other.averaged,
        one.counted or other.counted,
        one.shared or other.shared,
        one.ratio or other.ratio,
        one.uneven or other.uneven,
        one.divided or other.divided,
        one.content or other.content,
        one.average or other.average,
    )


def _entered(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...], sign: int) -> tuple[tuple[str, int], ...]:
    found = dict(one)
    for name, count in other:
        found[name] = found.get(name, 0) + sign * count
    return tuple(sorted((name, count) for name, count in found.items() if count)) or _NONE


def plus(one: Number, other: Number) -> Number:
    """A sum, or one of two ways: of one power, or not known. What is written out is added to anything."""
    if isinstance(one, Scale) and isinstance(other, Scale):
        if one.constant or other.constant:
            return other if one.constant else one
        if (one.power, one.open) != (other.power, other.open) or (one.joined is None) is not (other.joined is None):
            return None
        return replace(
            one,
            own=one.own or other.own,
            counted=one.counted or other.counted,
            shared=one.shared or other.shared,
            ratio=one.ratio or other.ratio,
            uneven=one.uneven or other.uneven,
            divided=one.divided or other.divided,
            content=one.content or other.content,
            average=one.average or other.average,
        )
    if isinstance(one, Scale) and one.constant:
        return other
    if isinstance(other, Scale) and other.constant:
        return one
    if isinstance(one, Parts) and isinstance(other, Parts) and [k for k, _ in one.entries] == [k for k, _ in other.entries]:
        return Parts(tuple((key, plus(value, other.get(key))) for key, value in one.entries))
    if isinstance(one, Items) and isinstance(other, Items):
        return Items(plus(one.element, other.element), one.count if one.count == other.count else None)
    return None


def summed(number: Number) -> Number:
    """`sum(x)`: as much more as there are elements."""
    if not isinstance(number, Items):
        return _together(number)
    inner = summed(number.element)
    if number.count is None:
        return None
    counts = number.count
    return mapped(inner, lambda s: replace(times(s, counts), own=s.own or counts.own, ratio=s.ratio))


def averaged(number: Number) -> Number:
    """`mean(x)`: as much as one of them."""
    if not isinstance(number, Items):
        return _together(number)
    return mapped(averaged(number.element), lambda s: replace(s, average=True))


def _together(number: Number) -> Number:
    """What is made of all parts of a tuple: of one power, or not known."""
    if not isinstance(number, Parts):
        return number
    values = [value for _, value in number.entries]
    found = values[0] if values else None
    for value in values[1:]:
        found = plus(found, value)
    return found


def joined(at: At, number: Number, *, adds: bool, averages: bool) -> Number:
    """What a reduction over the ranks gives. adds: their sum; averages: their mean; neither: one of them."""

    def change(scale: Scale) -> Scale:
        kept = scale.ratio if adds or averages else None
        return replace(
            scale,
            power=scale.power + adds,
            constant=False,
            own=False,
            joined=at,
            averaged=averages,
            ratio=None,
            uneven=scale.uneven or (at if kept is not None else None),
            divided=scale.divided or kept,
        )

    return mapped(number, change)
