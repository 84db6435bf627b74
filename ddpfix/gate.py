"""The byte gate: which codemods can have something to say about a file, told from its bytes alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from codemods.analysis.distribution import is_test_file
from codemods.codemod import DdpCodemod
from codemods.sites import Site
from codemods.spoken import without_docstrings
from codemods.text_file import TEXT_KINDS

HEAD = 4096  # bytes; where a common word occurs, it mostly does so early


class Gate:
    """Tests the TRIGGERS of some codemods against bytes.

    The words of all codemods' first groups are looked for together, in one pass: most files hold none of them, and of the
    others only those codemods go on whose words were seen. There each group is one pass, answered once where several codemods
    share it. Put the group that most files fail first.
    """

    MOST_WORDS = 64  # above it an automaton leaves its fast mode: 1.4 GB/s become 0.5 (ahocorasick_rs 1.0.3, measured)

    def __init__(self, codemods: Sequence[DdpCodemod]) -> None:
        groups = tuple(dict.fromkeys(group for c in codemods for group in c.TRIGGERS))
        self._anchors = _AnyOf(dict.fromkeys(word for c in codemods for word in c.TRIGGERS[0]))
        self._opened_by = [_opened_by(anchor, self._anchors.words, codemods) for anchor in self._anchors.words]
        self._groups = [_AnyOf(group) for group in groups]
        # a word that was seen says yes for every group that asks for it, or for a part of it
        self._said = [[i for i, group in enumerate(groups) if any(w in anchor for w in group)] for anchor in self._anchors.words]
        self._text = [(c, _AnyOf(c.TEXT)) for c in codemods if c.TEXT]
        self._needs = [(c, tuple(groups.index(g) for g in c.TRIGGERS)) for c in codemods]

    def open_for(self, data: bytes, path: str = "") -> tuple[DdpCodemod, ...]:
        """The codemods whose every group of words has one in `data`, whose site is there, and which read such a file."""
        if path.endswith(TEXT_KINDS):
            tests = is_test_file(path)
            return tuple(
                c for c, words in self._text
                if path.endswith(c.TEXT_KINDS) and words.occurs_in(data) and (c.READS_TESTS or not tests)
            )  # fmt: skip
        seen = self._anchors.seen_in(data)
        if not seen:
            return ()
        maybe = frozenset().union(*(self._opened_by[i] for i in seen))
        groups = self._groups
        answers: list[bool | None] = [None] * len(groups)
        for anchor in seen:
            for i in self._said[anchor]:
                answers[i] = True

        def passes(i: int) -> bool:
            known = answers[i]
            if known is None:
                known = answers[i] = groups[i].occurs_in(data)
            return known

        open_for = [c for n, (c, needs) in enumerate(self._needs) if n in maybe and all(passes(i) for i in needs)]
        if open_for and path and is_test_file(path):
            open_for = [c for c in open_for if c.READS_TESTS]
        found: dict[re.Pattern[bytes] | Site, bool] = {}  # codemods share patterns, too

        code: list[bytes] = []

        def done() -> bytes:
            if not code:
                code.append(without_docstrings(data))
            return code[0]

        def has(site: re.Pattern[bytes] | Site) -> bool:
            if site not in found:
                found[site] = bool(site.search(data) and site.search(done()))
            return found[site]

        return tuple(c for c in open_for if not c.SITES or any(map(has, c.SITES)))


def _opened_by(anchor: bytes, anchors: Sequence[bytes], codemods: Sequence[DdpCodemod]) -> frozenset[int]:
    """The numbers of the codemods for which seeing `anchor` may matter.

    A pass reports no match inside another: a word that begins within `anchor` may stand there unreported, too.
    """
    hidden = [w for w in anchors if any(anchor.endswith(w[:n]) for n in range(1, len(w)))]
    words = (anchor, *hidden)
    return frozenset(n for n, c in enumerate(codemods) if any(w in word for word in c.TRIGGERS[0] for w in words))


class _AnyOf:
    """Words of which one must occur, looked for in one pass; a word that holds another of them is not needed."""

    def __init__(self, words: Iterable[bytes]) -> None:
        given = tuple(words)
        self.words = [w for w in given if not any(other != w and other in w for other in given)]
        self._scans = [
            BytesAhoCorasick(self.words[i : i + Gate.MOST_WORDS], matchkind=MatchKind.LeftmostFirst)
            for i in range(0, len(self.words), Gate.MOST_WORDS)
        ]

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
