"""What both sides meet on each way out of a function: for each answer of the tests by which they may leave it."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.ranks.trace_items import Choice, Item, Trace

Items = tuple[Item, ...]
_MOST_TESTS = 3  # each makes two ways of one


def ways_out(a: Items, b: Items, most: int = _MOST_TESTS) -> Iterator[tuple[Items, Items]]:
    """What the two sides meet, for each answer of the tests by which both may leave, and of those that one side alone makes."""
    for i, x in enumerate(a) if most else ():
        if (choice := _with_exit(x)) is None:
            continue
        j = next((j for j, y in enumerate(b) if _with_exit(y) is not None and _is_same_test(choice, y)), None)
        if j is None:
            yield from _ways_of_one(a, i, choice, b, most)
            return
        other = _with_exit(b[j])
        for one, two in zip(choice.arms, other.arms if other is not None else (), strict=True):
            if "raise" not in (one.end, two.end):
                left = (*a[:i], *followed(one, a[i + 1 :], False))
                right = (*b[:j], *followed(two, b[j + 1 :], False))
                yield from ways_out(left, right, most - 1)
        return
    for j, y in enumerate(b) if most else ():
        if (choice := _with_exit(y)) is not None:
            yield from ((left, right) for right, left in _ways_of_one(b, j, choice, a, most))
            return
    yield a, b


def _ways_of_one(mine: Items, at: int, choice: Choice, theirs: Items, most: int) -> Iterator[tuple[Items, Items]]:
    """The same for a test that the other side does not come to: it left above, by `if rank != 0: finish(); return`."""
    for arm in choice.arms:
        if arm.end != "raise":
            yield from ways_out((*mine[:at], *followed(arm, mine[at + 1 :], False)), theirs, most - 1)


def leaves_alone(a: Items, b: Items) -> bool:
    """True where one side makes a test by which it may leave, and the other does not come to it."""
    one, other = ({choice.key for x in items if (choice := _with_exit(x)) is not None} for items in (a, b))
    return one != other


def _with_exit(item: Item) -> Choice | None:
    """The item, where it is a test by which a side may leave, itself or by one that stands in an arm of it."""
    if not isinstance(item, Choice) or item.loop:
        return None
    return item if any(arm.end or any(_with_exit(i) for i in arm.items) for arm in item.arms) else None


def _is_same_test(choice: Choice, other: Item) -> bool:
    return isinstance(other, Choice) and other.key == choice.key and len(other.arms) == len(choice.arms)


def followed(arm: Trace, rest: Items, loop: bool) -> Items:
    goes_on = not arm.end or (loop and arm.end == "continue")
    return (*arm.items, *rest) if goes_on else arm.items
