"""The byte gate: which codemods can have something to say about a file, told from its bytes alone."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.codemod import DdpCodemod


class Gate:
    """Tests the TRIGGERS of some codemods against bytes; a word is looked for once in a file, and only if it matters."""

    def __init__(self, codemods: Sequence[DdpCodemod]) -> None:
        self._codemods = tuple(codemods)
        words = dict.fromkeys(w for c in codemods for group in c.TRIGGERS for w in group)
        self._words = tuple(words)
        number = {word: i for i, word in enumerate(self._words)}
        self._needs = [tuple(tuple(number[w] for w in group) for group in c.TRIGGERS) for c in codemods]

    def open_for(self, data: bytes) -> tuple[DdpCodemod, ...]:
        """The codemods whose every group of words has one in `data`."""
        seen: list[bool | None] = [None] * len(self._words)
        words = self._words

        def holds(i: int) -> bool:
            known = seen[i]
            if known is None:
                known = seen[i] = words[i] in data
            return known

        return tuple(
            codemod for codemod, groups in zip(self._codemods, self._needs, strict=True)
            if all(any(holds(i) for i in group) for group in groups)
            and (codemod.SITE is None or codemod.SITE.search(data))
        )  # fmt: skip
