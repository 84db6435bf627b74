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


# codemods with the numbers of the groups that each needs, and what is known of each group
_Opened = tuple[list[tuple[DdpCodemod, tuple[int, ...]]], list[bool | None]]


class Gate:
    """Tests the TRIGGERS of some codemods against bytes.

    The words of all codemods' first groups are looked for together, in one pass: most files hold none of them, and of the
    others only those codemods go on whose words were seen. There each group is one pass, answered once where several codemods
    share it. Put the group that most files fail first.
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
        self._codemods = codemods
        self._words = tuple(dict.fromkeys(group for c in codemods for group in c.TRIGGERS))
        self._groups = [AnyOf(group) for group in self._words]
        numbers = {group: n for n, group in enumerate(self._words)}
        self.anchors = AnyOf(dict.fromkeys(word for c in codemods for word in c.TRIGGERS[0]))
        self._text = [(c, AnyOf(c.TEXT)) for c in codemods if c.TEXT]
        self._needs = [(c, tuple(numbers[g] for g in c.TRIGGERS)) for c in codemods]
        self._needed = dict(self._needs)
        self._first_in: dict[bytes, list[int]] = {}
        self._group_with: dict[bytes, list[int]] = {}
        for asked, groups in ((self._first_in, [c.TRIGGERS[0] for c in codemods]), (self._group_with, self._words)):
            for n, group in enumerate(groups):
                for word in group:
                    asked.setdefault(word, []).append(n)
        self._of_anchor: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self._opened: dict[frozenset[int], _Opened] = {}  # many files hold the same of the words

    def _open(self, seen: frozenset[int]) -> _Opened:
        """(the codemods for which these words may matter with the groups they need, the groups that are answered by them)."""
        maybe: set[int] = set()
        answers: list[bool | None] = [None] * len(self._groups)
        for anchor in seen:
            if anchor not in self._of_anchor:
                self._of_anchor[anchor] = self.meaning(self.anchors.words[anchor])
            opened, said = self._of_anchor[anchor]
            maybe |= opened
            for i in said:
                answers[i] = True
        return [needs for n, needs in enumerate(self._needs) if n in maybe], answers

    def meaning(self, anchor: bytes) -> tuple[frozenset[int], frozenset[int]]:
        """(numbers of the codemods for which seeing `anchor` may matter, of the groups that it says yes for).

        A pass reports no match inside another: a word that begins within `anchor` may stand there unreported, too. And a word
        that was seen answers every group that asks for it, or for a part of it.
        """
        ends = tuple(anchor[n:] for n in range(len(anchor)))
        words = (anchor, *(w for w in self.anchors.words if w.startswith(ends)))
        holders = {holder for word in words for holder in (word, *self.anchors.holders.get(word, ()))}
        parts = {anchor[n:end] for n in range(len(anchor)) for end in range(n + 1, len(anchor) + 1)}
        opened = (n for word in holders for n in self._first_in[word])
        return frozenset(opened), frozenset(n for part in parts for n in self._group_with.get(part, ()))

    def text(self, data: bytes, path: str) -> tuple[DdpCodemod, ...]:
        """Those for a file that is no Python."""
        tests = is_test_file(path)
        return tuple(
            c for c, words in self._text
            if path.endswith(c.TEXT_KINDS) and words.occurs_in(data) and (c.READS_TESTS or not tests)
        )  # fmt: skip

    def code(self, data: bytes, path: str) -> tuple[DdpCodemod, ...]:
        """Those for Python, whose own names are spelled as the words are."""
        seen = frozenset(self.anchors.seen_in(data))
        if not seen:
            return ()
        groups = self._groups
        if seen not in self._opened:
            self._opened[seen] = self._open(seen)
        maybe, said = self._opened[seen]
        answers = list(said)

        def passes(i: int) -> bool:
            known = answers[i]
            if known is None:
                known = answers[i] = groups[i].occurs_in(data)
            return known

        tests = bool(path) and is_test_file(path) and not is_program(path, data)
        open_for = [c for c, needs in maybe if (c.READS_TESTS or not tests) and all(passes(i) for i in needs)]
        found: dict[re.Pattern[bytes] | Site, bool] = {}  # codemods share patterns, too

        def has(site: re.Pattern[bytes] | Site) -> bool:
            if site not in found:
                found[site] = bool(site.search(data))
            return found[site]

        opened = [c for c in open_for if not c.SITES or any(map(has, c.SITES))]
        return self._in_code(opened, without_words(data)) if opened else ()

    def _in_code(self, opened: Sequence[DdpCodemod], code: bytes) -> tuple[DdpCodemod, ...]:
        """Those of the codemods whose words and sites stand in the code as well: documentation speaks of everything."""
        groups = cache(lambda i: self._groups[i].occurs_in(code))
        has = cache(lambda site: bool(site.search(code)))
        return tuple(c for c in opened if all(map(groups, self._needed[c])) and (not c.SITES or any(map(has, c.SITES))))


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

    def seen_in(self, data: bytes) -> set[int]:
        """The numbers of words that one pass reports; a match inside another is not among them."""
        found: set[int] = set()
        for n, scan in enumerate(self._scans):
            found.update(n * Gate.MOST_WORDS + match[0] for match in scan.find_matches_as_indexes(data))
        return found

    def occurs_in(self, data: bytes) -> bool:
        if len(self.words) == 1:
            return self.words[0] in data
        head = data[:HEAD]  # a scan goes to the end whatever it finds on the way
        if any(scan.find_matches_as_indexes(head) for scan in self._scans):
            return True
        return len(data) > HEAD and any(scan.find_matches_as_indexes(data) for scan in self._scans)
