"""Line replacements cut down to the lines that change, as a person would select them in an editor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_APART = 3  # unchanged lines between two changes that make them two

Replacement = tuple[int, int, str]  # (first line, last line, new text), lines from 1


def narrowed(lines: Sequence[str], made: Sequence[Replacement]) -> list[Replacement]:
    """The same text from smaller replacements. Each replaces a line at least: what is put in takes a line beside it along,
    for SARIF's viewers and a forge's suggestions show no replacement of nothing.
    """
    return [small for top, bottom, new in made for small in _parts(lines, top, bottom, new)]


def _parts(lines: Sequence[str], top: int, bottom: int, new: str) -> Iterator[Replacement]:
    before, after = list(lines[top - 1 : bottom]), new.splitlines(keepends=True)
    if not before or not after:
        yield top, bottom, new
        return
    groups: list[list[int]] = []  # [first and end index before, first and end index after] of each change
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if groups and i1 - groups[-1][1] <= _APART:
            groups[-1][1], groups[-1][3] = i2, j2
        else:
            groups.append([i1, i2, j1, j2])
    for i1, i2, j1, j2 in groups:
        if i1 == i2 and i1:
            i1, j1 = i1 - 1, j1 - 1
        elif i1 == i2:
            i2, j2 = i2 + 1, j2 + 1
        yield top + i1, top + i2 - 1, "".join(after[j1:j2])
