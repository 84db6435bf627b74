"""A pattern of which a file must show a match before it is parsed, looked for only where one of its words stands.

`re` tries such a pattern at every byte, for 10 to 40 ns each; the words are found at 1 GB/s, and few lines hold one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from ahocorasick_rs import BytesAhoCorasick, MatchKind


class Site:
    """words: every match of `pattern` holds one of them in its first line; none of them holds a line end.

    behind: how many lines after that one a match may reach into. A pattern that excludes something may be seen where the
    excluded stands further below: a file too many is read, never one too few.
    """

    def __init__(self, pattern: bytes, *words: bytes, behind: int = 0) -> None:
        self._written = pattern
        self.words, self.behind = words, behind

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:  # where no file holds a word it is never compiled
        return re.compile(self._written)

    @cached_property
    def _scan(self) -> BytesAhoCorasick:
        return BytesAhoCorasick(self.words, matchkind=MatchKind.LeftmostFirst)

    def _windows(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """(start, end of the line, end of what may belong to a match) for each line with a word that is no comment."""
        end = -1
        for _, at, _ in self._scan.find_matches_as_indexes(data):
            if at >= end:
                last = end = data.find(b"\n", at) + 1 or len(data)
                start = data.rfind(b"\n", 0, at) + 1
                if data[start:at].lstrip()[:1] == b"#":
                    continue
                for _ in range(self.behind):
                    last = data.find(b"\n", last) + 1 or len(data)
                yield start, end, last

    def search(self, data: bytes) -> bool:
        """True if the pattern matches somewhere in `data`."""
        return any(self.pattern.search(data, start, last) for start, _, last in self._windows(data))

    def lines(self, data: bytes) -> Iterator[int]:
        """The numbers of the lines in which a match begins, from 1, in order."""
        line, counted = 1, 0
        for start, end, last in self._windows(data):
            if (match := self.pattern.search(data, start, last)) and match.start() < end:
                line += data.count(b"\n", counted, start)
                counted = start
                yield line


class Beside(Site):
    """A site that counts where one of other words or sites, `beside`, stands anywhere in the file."""

    def __init__(self, beside: tuple[bytes | Site, ...], pattern: bytes, *words: bytes) -> None:
        super().__init__(pattern, *words)
        self.beside = beside

    def search(self, data: bytes) -> bool:
        return super().search(data) and any(b.search(data) if isinstance(b, Site) else b in data for b in self.beside)
