"""What a file only says, not does: docstrings and comments. A word that stands there alone is no reason to parse the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

# On a line of its own; one that holds three quotes may be the end of a string, with code behind it.
_COMMENT = re.compile(rb"\n[ \t]*#(?![^\n]*(?:\"\"\"|'''))[^\r\n]*")
_PLAIN = frozenset({b"", b"r", b"R", b"u", b"U"})  # what may stand between the line's beginning and a docstring; no f-string


def without_words(data: bytes) -> bytes:
    """The source without docstrings, and without comments on lines of their own; what stands behind `#` in a longer string goes
    with them, no code is written there.
    """
    return _COMMENT.sub(b"", without_docstrings(data))


def without_docstrings(data: bytes) -> bytes:
    """The source without the triple-quoted strings that begin a line.

    From a place on where quotes might be misread (in a comment, in another string) everything is kept: what is left out was
    a string for sure.
    """
    kept, at = [], 0
    for start, end in _docstrings(data):
        kept.append(data[at:start])
        at = end
    kept.append(data[at:])
    return b"".join(kept)


def _docstrings(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of the triple-quoted strings that begin a line, in order."""
    size = len(data)
    double, single = _next(data, b'"""', 0), _next(data, b"'''", 0)
    while (start := min(double, single)) < size:
        before = data[data.rfind(b"\n", 0, start) + 1 : start]
        if any(mark in before for mark in (b"#", b"'", b'"')):
            return
        quotes = data[start : start + 3]
        end = data.find(quotes, start + 3)
        while end >= 0 and _is_escaped(data, end):
            end = data.find(quotes, end + 1)
        if end < 0:
            return
        if (prefix := before.strip()) in _PLAIN:
            yield start - len(prefix), end + 3
        if double < end + 3:
            double = _next(data, b'"""', end + 3)
        if single < end + 3:
            single = _next(data, b"'''", end + 3)


def _is_escaped(data: bytes, at: int) -> bool:
    """True behind an odd number of backslashes; `C:\\\\` ends in one that is escaped itself."""
    before = at
    while data[before - 1 : before] == b"\\":
        before -= 1
    return (at - before) % 2 == 1


def _next(data: bytes, quotes: bytes, at: int) -> int:
    """Where `quotes` stand next, the end where they do not."""
    found = data.find(quotes, at)
    return found if found >= 0 else len(data)
