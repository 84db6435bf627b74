"""What a process meets on the way through a function, as data: collectives, unknown calls, choices and loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from enum import Enum

from codemods.analysis.ranks.collectives import PENDING, Collective
from codemods.runtime.record import field, record, replace

Key = tuple[tuple[str, int, int], ...]


class Side(Enum):
    """The processes that a test of the rank tells apart."""

    ZERO = "rank 0"
    OTHER = "the other ranks"

    @property
    def turned(self) -> Side:
        return Side.OTHER if self is Side.ZERO else Side.ZERO


@record
class Step:
    """A place on the way to a collective."""

    path: str
    line: int
    text: str


@record
class Meeting:
    """A collective. steps: the calls that lead to it, itself the last. node: where the function that is read makes the first."""

    key: Key
    name: str
    steps: tuple[Step, ...] = field(compare=False)
    node: ast.AST = field(compare=False)
    collective: Collective = field(compare=False)


@record
class Unknown:
    """Something that may hold collectives: a call that leads out of what is known, a `yield`."""

    key: Key
    text: str


@record
class Choice:
    """A test that has nothing to do with ranks; or a loop, with one arm.

    over: for a loop, what it goes through in step: `for a, b in zip(xs, ys)` has as many rounds as `for x in xs`.
    """

    key: Key
    arms: tuple[Trace, ...]
    loop: bool = False
    over: frozenset[str] = frozenset()


Item = Meeting | Unknown | Choice


@record
class Trace:
    """Items in the order in which they are met. end: the exit that the last statement makes, "" where it goes on."""

    items: tuple[Item, ...] = ()
    end: str = ""

    @property
    def idle(self) -> bool:
        return not self.items and not self.end


def meetings(items: Iterable[Item]) -> Iterator[Meeting]:
    """Every collective in the items, those of choices and loops too."""
    for item in items:
        if isinstance(item, Meeting):
            yield item
        elif isinstance(item, Choice):
            for arm in item.arms:
                yield from meetings(arm.items)


def holds_unknown(items: Iterable[Item]) -> bool:
    return any(
        isinstance(i, Unknown) or (isinstance(i, Choice) and any(holds_unknown(a.items) for a in i.arms)) for i in items
    )


def behind_loop(body: Trace) -> Trace:
    """The body of a loop without a collective, for what stands behind the loop: a `continue` or `break` leads there, too."""
    items: list[Item] = []
    for item in body.items:
        if isinstance(item, Choice) and not item.loop:
            arms = tuple(behind_loop(arm) for arm in item.arms)
            items += [] if all(arm.idle for arm in arms) else [replace(item, arms=arms)]
        else:
            items.append(item)
    return Trace(tuple(items), "" if body.end in ("break", "continue") else body.end)


def moved(item: Item, key: Key, step: Step, call: ast.Call) -> Item:
    """An item of a callee as it stands in the caller."""
    if isinstance(item, Meeting):
        return replace(item, key=(*key, *item.key), steps=(step, *item.steps), node=call)
    if isinstance(item, Unknown):
        return replace(item, key=(*key, *item.key))
    arms = tuple(Trace(tuple(moved(i, key, step, call) for i in arm.items), arm.end) for arm in item.arms)
    return Choice((*key, *item.key), arms, item.loop)


def outward(items: tuple[Item, ...]) -> Iterator[Item]:
    """Items of a callee. A collective under a test of its own may or may not be met: what the caller passes decides."""
    for item in items:
        if isinstance(item, Choice) and not item.loop:
            if any(True for _ in meetings((item,))) or holds_unknown((item,)):
                yield Unknown(item.key, "a test")
            if any(arm.end in ("return", "raise") for arm in item.arms) and any(not arm.end for arm in item.arms):
                yield Unknown((*item.key, ("", 0, 0)), "an early return")
        elif isinstance(item, Choice):
            inner = tuple(outward(item.arms[0].items))
            if inner:
                yield Choice(item.key, (Trace(inner),), True)
        elif isinstance(item, Meeting) and not item.collective.framework:
            yield Unknown(item.key, item.name)  # zero_first(rank): a rank of -1 waits for nobody
        else:
            yield item


def evaluated(items: tuple[Item, ...]) -> Iterator[Item]:
    """Items of a function that is called when the metrics of an evaluation are reduced already."""
    for item in items:
        if isinstance(item, Choice):
            yield Choice(item.key, tuple(Trace(tuple(evaluated(a.items)), a.end) for a in item.arms), item.loop)
        elif not (isinstance(item, Meeting) and item.name in PENDING):
            yield item
