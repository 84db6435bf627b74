"""The byte gate: which codemods can have something to say about a file, told from its bytes alone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from codemods.analysis.distribution import is_program, is_test_file
from codemods.api.codemod import DdpCodemod
from codemods.files.sites import Site
from codemods.files.spelling import own_names
from codemods.files.text_file import READ_KINDS
from codemods.files.without_docstrings import without_words

HEAD = 4096  # bytes; where a common word occurs, it mostly does so early


class Gate:
    """Tests the TRIGGERS of some codemods against bytes.

    The words of all groups of all codemods are looked for together, in one pass; a second one over what is left without
    documentation, where some codemod is open, says which of them stay so.
    """

    MOST_WORDS = 64  # above it an automaton leaves its fast mode: 1.4 GB/s become 0.5 (ahocorasick_rs 1.0.3, measured)

    def __init__(self, codemods: Sequence[DdpCodemod], ranks: Collection[str] = ()) -> None:
        """ranks: names that stand for the rank in the project, read as words of it (analysis/ranks/gate_names.py)."""
        pairs = [name.encode().rpartition(b"(") for name in sorted(ranks)]
        self._ranks = tuple(number for _, within, number in pairs if not within)
        self._numbers = tuple((b"def " + function + b"(", number) for function, within, number in pairs if within)
        self._asked = _asked(tuple(codemods))

    def open_for(self, data: bytes, path: str = "") -> tuple[DdpCodemod, ...]:
        """The codemods whose every group of words has one in `data`, whose site is there, and which read such a file."""
        if path.endswith(READ_KINDS):
            return self._asked.text(data, path)
        ranks = (*self._ranks, *(number for head, number in self._numbers if head in data))
        return self._asked.code(own_names(data, ranks), path)


class Asked:
    """What some codemods ask of bytes; with hundreds of words it takes as long to make as a small file does to be judged."""

    def __init__(self, codemods: tuple[DdpCodemod, ...]) -> None:
        self._text = [(c, AnyOf(c.TEXT)) for c in codemods if c.TEXT]
        groups = {group: 1 << n for n, group in enumerate(dict.fromkeys(group for c in codemods for group in c.TRIGGERS))}
        self._needs = [(c, sum({groups[group] for group in c.TRIGGERS})) for c in codemods]
        self._needed = dict(self._needs)
        held: dict[bytes, int] = {}  # word -> the groups that it stands in, as bits
        for group, bit in groups.items():
            for word in group:
                held[word] = held.get(word, 0) | bit
        self._words, self._groups = tuple(held), tuple(held.values())

    def text(self, data: bytes, path: str) -> tuple[DdpCodemod, ...]:
        """Those for a file that is no Python."""
        tests = is_test_file(path)
        return tuple(
            c for c, words in self._text
            if path.endswith(c.TEXT_KINDS) and words.occurs_in(data) and (c.READS_TESTS or not tests)
        )  # fmt: skip

    def code(self, data: bytes, path: str) -> tuple[DdpCodemod, ...]:
        """Those for Python, whose own names are spelled as the words are."""
        passed = self._passed(data)
        maybe = [c for c, needs in self._needs if passed & needs == needs]
        if not maybe:
            return ()
        tests = bool(path) and is_test_file(path) and not is_program(path, data)
        open_for = [c for c in maybe if c.READS_TESTS or not tests]
        found: dict[re.Pattern[bytes] | Site, bool] = {}  # codemods share patterns, too

        def has(site: re.Pattern[bytes] | Site) -> bool:
            if site not in found:
                found[site] = bool(site.search(data))
            return found[site]

        opened = [c for c in open_for if not c.SITES or any(map(has, c.SITES))]
        return self._in_code(opened, without_words(data)) if opened else ()

    def _in_code(self, opened: Sequence[DdpCodemod], code: bytes) -> tuple[DdpCodemod, ...]:
        """Those of the codemods whose words and sites stand in the code as well: documentation speaks of everything."""
        passed = self._passed(code)
        has = cache(lambda site: bool(site.search(code)))
        found = (c for c in opened if passed & (needs := self._needed[c]) == needs)
        return tuple(c for c in found if not c.SITES or any(map(has, c.SITES)))

    def _passed(self, data: bytes) -> int:
        """The groups of which a word stands in `data`, as bits. All words in one pass, those inside others, too.

        Group by group, each a pass of its own, a file of a framework was gone through seventy times.
        """
        passed = 0
        for n in {match[0] for match in self._every.find_matches_as_indexes(data, overlapping=True)}:
            passed |= self._groups[n]
        return passed

    @cached_property
    def _every(self) -> BytesAhoCorasick:
        return BytesAhoCorasick(self._words, matchkind=MatchKind.Standard)


_asked = lru_cache(maxsize=16)(Asked)  # each round of fixes has a gate of its own, by the project's names for the rank


class AnyOf:
    """Words of which one must occur, looked for in one pass; a word that holds another of them is not needed."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self._given = dict.fromkeys(words)

    @cached_property
    def holders(self) -> dict[bytes, list[bytes]]:
        """By word: the others that hold it. Each is looked for in one text of all; word by word, hundreds take some 20 ms."""
        given, text = tuple(self._given), b"\0".join(self._given)
        starts = list(accumulate((len(word) + 1 for word in given), initial=0))
        found: dict[bytes, list[bytes]] = {}
        for word in given:
            at = text.find(word)
            while at >= 0:
                holder = given[bisect_right(starts, at) - 1]
                if holder != word and word in holder:
                    found.setdefault(word, []).append(holder)
                at = text.find(word, at + 1)
        return found

    @cached_property
    def words(self) -> list[bytes]:
        """Those that hold no other."""
        holders = set().union(*self.holders.values())
        return [word for word in self._given if word not in holders]

    @cached_property
    def _scans(self) -> list[BytesAhoCorasick]:
        parts = [self.words[i : i + Gate.MOST_WORDS] for i in range(0, len(self.words), Gate.MOST_WORDS)]
        return [BytesAhoCorasick(words, matchkind=MatchKind.LeftmostFirst) for words in parts]

    def occurs_in(self, data: bytes) -> bool:
        if len(self.words) == 1:
            return self.words[0] in data
        head = data[:HEAD]  # a scan goes to the end whatever it finds on the way
        if any(scan.find_matches_as_indexes(head) for scan in self._scans):
            return True
        return len(data) > HEAD and any(scan.find_matches_as_indexes(data) for scan in self._scans)
