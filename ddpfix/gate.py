"""The byte gate: which codemods can have something to say about a file, told from its bytes alone."""

from __future__ import annotations

from collections.abc import Sequence

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from codemods.analysis.distribution import is_test_file
from codemods.codemod import DdpCodemod


class Gate:
    """Tests the TRIGGERS of some codemods against bytes.

    The words of each codemod's first group are looked for together, in one pass: most files hold none of them. In the others
    a word is looked for once, and only if it matters; not at all where a part of it was looked for in vain. A group that
    several codemods share is answered once. Put the group that most files fail first.
    """

    MOST_ANCHORS = 64  # above it the automaton leaves its fast mode: 1.4 GB/s become 0.5 (ahocorasick_rs 1.0.3, measured)

    def __init__(self, codemods: Sequence[DdpCodemod]) -> None:
        words = tuple(dict.fromkeys(w for c in codemods for group in c.TRIGGERS for w in group))
        groups = tuple(dict.fromkeys(group for c in codemods for group in c.TRIGGERS))
        number = {word: i for i, word in enumerate(words)}
        anchors = dict.fromkeys(w for c in codemods for w in (c.TRIGGERS[0] if c.TRIGGERS else (b"",)))
        plain = [w for w in anchors if not any(o != w and o in w for o in anchors)]
        self.anchors = len(plain)
        self._scan = BytesAhoCorasick(plain, matchkind=MatchKind.LeftmostFirst) if anchors and all(anchors) else None
        self._words = words
        self._parts = [tuple(number[w] for w in words if w != word and w in word) for word in words]
        self._groups = [tuple(number[w] for w in group) for group in groups]
        self._needs = [(c, tuple(groups.index(g) for g in c.TRIGGERS)) for c in codemods]

    def open_for(self, data: bytes, path: str = "") -> tuple[DdpCodemod, ...]:
        """The codemods whose every group of words has one in `data`, whose site is there, and which read such a file."""
        if self._scan is not None and not self._scan.find_matches_as_indexes(data):
            return ()
        words, parts = self._words, self._parts
        seen: list[bool | None] = [None] * len(words)
        answers: list[bool | None] = [None] * len(self._groups)

        def holds(i: int) -> bool:
            known = seen[i]
            if known is None:
                known = seen[i] = not any(seen[part] is False for part in parts[i]) and words[i] in data
            return known

        def passes(i: int) -> bool:
            known = answers[i]
            if known is None:
                known = answers[i] = any(holds(word) for word in self._groups[i])
            return known

        open_for = [c for c, needs in self._needs if all(passes(i) for i in needs)]
        if open_for and path and is_test_file(path):
            open_for = [c for c in open_for if c.READS_TESTS]
        return tuple(c for c in open_for if c.SITE is None or c.SITE.search(data))
