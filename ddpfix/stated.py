"""What the code that leaves a place alone said of it, as far as it concerns a line."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.files.left_alone import Left
from codemods.runtime.record import record

_MOST = 3  # sentences of one codemod


@record
class Stated:
    """One sentence with those who left the place alone for it. line: the judged place, 0 for the whole file."""

    codes: tuple[str, ...]
    line: int
    why: str
    at: tuple[str, int] | None = None
    is_here: bool = False

    def text(self, path: str) -> str:
        where = "" if self.is_here or not self.line else f"line {self.line}: "
        seen = self.at
        if seen is None or (seen[0] == path and seen[1] in (0, self.line)):
            return f"{where}{self.why}"
        return f"{where}{self.why} ({f'line {seen[1]}' if seen[0] == path else f'{seen[0]}:{seen[1]}'})"


def concerning(
    said: Sequence[tuple[DdpCodemod, Sequence[Left]]], path: str, line: int, round_it: tuple[int, int]
) -> tuple[Stated, ...]:
    """What was said of the line, of its function and of the file, and what has its reason in the line; nearest first."""
    grouped: dict[tuple[int, int, str, tuple[str, int] | None], list[str]] = {}
    for codemod, places in said:
        near = dict.fromkeys(p for p in places if _distance(p, path, line, round_it) is not None)
        for place in sorted(near, key=lambda p: _distance(p, path, line, round_it) or 0)[:_MOST]:
            span = (place.line, place.end_line) if place.path == path else (0, 0)
            codes = grouped.setdefault((*span, _sentence(place, path), place.at), [])
            if codemod.code not in codes:
                codes.append(codemod.code)
    out = [
        Stated(tuple(codes), first, why, at, bool(first) and first <= line <= end)
        for (first, end, why, at), codes in grouped.items()
    ]
    return tuple(sorted(out, key=lambda s: (not s.is_here, not s.line, abs(s.line - line), s.codes)))


def _sentence(place: Left, path: str) -> str:
    return place.why if place.path == path else f"{place.path}:{place.line}: {place.why}"


def _distance(place: Left, path: str, line: int, round_it: tuple[int, int]) -> int | None:
    """How far from the line; None where it is of another function or file."""
    first, end = round_it
    if place.path == path:
        if not place.line:
            return 10**6
        if place.line <= line <= place.end_line:
            return 0
        if first <= place.line <= end:
            return abs(place.line - line)
    if place.at is not None and place.at[0] == path and first <= place.at[1] <= end:
        return abs(place.at[1] - line) + 1
    return None
