"""Which edits cannot both be made, and a store of edits that is asked so without holding each against each."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from codemods.api.findings import (
    AddDecorator,
    ChangeItems,
    DropEntry,
    DropKeyword,
    Edit,
    RemoveStatement,
    RenameKeyword,
    ReplaceExpression,
    ReplaceLines,
    ReplaceText,
    ReplaceWithText,
    SetKeyword,
    WrapInGuard,
    claims,
)


class Edits:
    """Edits of files, found by their places.

    Two edits clash only where their places meet: one of them then covers the beginning of the other. A place is a line and a
    column in one number. So each edit is filed under the few blocks of 2^n aligned numbers that it is made of, for those that
    begin inside it, and under its first number, for those around it. A file with n edits beside each other costs n log n.
    """

    def __init__(self) -> None:
        self._covering: dict[tuple[str, int, int], list[Edit]] = {}
        self._beginning: dict[str, list[tuple[int, Edit]]] = {}

    def add(self, edit: Edit) -> None:
        first, last = _places(edit)
        for block in _blocks(first, last):
            self._covering.setdefault((edit.path, *block), []).append(edit)
        bisect.insort(self._beginning.setdefault(edit.path, []), (first, edit), key=_first)

    def clashes(self, edit: Edit) -> bool:
        """Whether one of them clashes with this."""
        return any(clash(edit, other) for other in self._near(edit))

    def _near(self, edit: Edit) -> Iterator[Edit]:
        first, last = _places(edit)
        for size in range(_SIZES):
            yield from self._covering.get((edit.path, size, first >> size), ())
        rows = self._beginning.get(edit.path, [])
        for at in range(bisect.bisect_right(rows, first, key=_first), bisect.bisect_right(rows, last, key=_first)):
            yield rows[at][1]


_COLUMNS = 22  # bits: a file has at most 2 MiB, so no line is longer
_SIZES = 2 * _COLUMNS


def _first(row: tuple[int, Edit]) -> int:
    return row[0]


def _places(edit: Edit) -> tuple[int, int]:
    """The first and the last place of an edit; one of whole lines begins and ends with them."""
    span = claims(edit)
    first, last = _lines(edit)
    if isinstance(edit, ReplaceLines):
        return first << _COLUMNS, (last + 1 << _COLUMNS) - 1
    return first << _COLUMNS | span.column, last << _COLUMNS | span.end_column


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers `first` to `last` as blocks (n, i): the 2^n numbers from i * 2^n on, the fewest there are."""
    size, end = 0, last + 1
    while first < end:
        if first & 1:
            yield size, first
            first += 1
        if end & 1:
            end -= 1
            yield size, end
        first, end, size = first >> 1, end >> 1, size + 1


def clash(a: Edit, b: Edit) -> bool:
    """True where two edits of a file cannot both be made as they were meant."""
    if a == b:
        return False
    region, other = claims(a), claims(b)
    if isinstance(a, ReplaceLines) or isinstance(b, ReplaceLines):
        return _share_lines(a, b)
    keywords = (SetKeyword, DropKeyword, RenameKeyword)
    if isinstance(a, keywords) and isinstance(b, keywords) and region == other:
        return not _keywords_of(a).isdisjoint(_keywords_of(b))
    if isinstance(a, WrapInGuard) and isinstance(b, WrapInGuard):
        return region.overlaps(other)
    for one, two, inner, outer in ((a, b, region, other), (b, a, other, region)):
        whole = (RemoveStatement, ReplaceExpression, ReplaceText, ReplaceWithText, ChangeItems, DropEntry)
        if isinstance(two, whole) and outer.holds(inner):
            return True
        # under the decorator a guard inside would be idle: the next round sees whether it is still wanted
        if isinstance(two, AddDecorator) and isinstance(one, WrapInGuard) and outer.holds(inner):
            return True
    return False


def _keywords_of(edit: SetKeyword | DropKeyword | RenameKeyword) -> set[str]:
    return {edit.name, edit.new} if isinstance(edit, RenameKeyword) else {edit.name}


def _share_lines(a: Edit, b: Edit) -> bool:
    """True where the lines of two edits meet."""
    (top, end), (other_top, other_end) = _lines(a), _lines(b)
    return top <= other_end and other_top <= end


def _lines(edit: Edit) -> tuple[int, int]:
    span = claims(edit)
    if isinstance(edit, ReplaceLines):
        return span.line, max(span.line, span.end_line - 1)
    return span.line, span.end_line
