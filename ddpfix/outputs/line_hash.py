"""GitHub's own fingerprint of a line: the hash of the hundred characters that follow its start, blanks left out.

It is what `github/codeql-action` works out for a SARIF result without one (its `fingerprints.ts` describes it) and warns of
where a tool's own differs; an upload by the API without it makes a new alert of an old one.
"""

from __future__ import annotations

from collections.abc import Iterable

WINDOW, FACTOR, END, SIZE = 100, 37, 0xFFFF, 1 << 64


def line_hashes(data: bytes, lines: Iterable[int]) -> dict[int, str]:
    """Line (from 1) -> `hash:occurrence` for those lines of a file that are there."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    units = _units(text.replace(" ", "").replace("\t", ""))
    starts = [0, *(i + 1 for i, unit in enumerate(units) if unit == 10)]
    windows = [tuple(units[s : s + WINDOW]) for s in starts]
    out = {}
    for line in lines:
        if 0 < line <= len(windows):
            here = windows[line - 1]
            out[line] = f"{_hash(here):x}:{sum(w == here for w in windows[:line])}"
    return out


def _units(text: str) -> list[int]:
    """The text in the units that JavaScript counts, and the mark of the end."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return [*memoryview(raw).cast("H"), END]


def _hash(units: tuple[int, ...]) -> int:
    value = 0
    for unit in (*units, *[0] * (WINDOW - len(units))):
        value = (value * FACTOR + unit) % SIZE
    return value
