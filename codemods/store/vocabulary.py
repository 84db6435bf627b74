"""Which of some runs of bytes can hold a word, told from the words that stand in them.

54 MB of source have 74,000 different words, a megabyte of text: looking there first and then in the runs that are left takes a
hundredth of the search through all of them, and in a big repository thousands of names are looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from codemods.runtime.lazy_pattern import lazy

_WORD = lazy(rb"\w+")
_MOST = 1_000_000  # words: a repository of more holds data, of which the index would be as large as the files


class Vocabulary:
    """The words of each run. `holding` may name a run too many, never one too few."""

    def __init__(self, runs: Sequence[bytes]) -> None:
        self._every = (1 << len(runs)) - 1
        self._words: dict[bytes, int] = {}  # word -> the runs that hold it, as bits
        for n, run in enumerate(runs):
            bit = 1 << n
            for word in set(_WORD.findall(run)):
                self._words[word] = self._words.get(word, 0) | bit
            if len(self._words) > _MOST:
                self._words = {}
                break
        self._text = b"\0".join((b"", *self._words, b""))

    def holding(self, text: bytes) -> int:
        """The runs that may hold `text`, as bits: those with a word that its longest word is, or is a part of."""
        part = max(_WORD.findall(text), key=len, default=b"")
        if not part or not self._words:
            return self._every
        found, at = 0, self._text.find(part)
        while at >= 0 and found != self._every:
            end = self._text.index(b"\0", at)
            found |= self._words[self._text[self._text.rindex(b"\0", 0, at) + 1 : end]]
            at = self._text.find(part, end)
        return found
