"""Findings that say the same, as a reader is told of them: the first in full, and the places of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codemods.api.findings import Finding
from ddpfix.summary.places import skeleton, where


@dataclass(frozen=True, slots=True)
class Alike:
    """Findings whose messages differ in names and numbers only, in order."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def same_words(self) -> bool:
        return len({_without_symbol(f) for f in self.findings}) == 1

    def others(self, most_files: int, first: frozenset[str] = frozenset()) -> str:
        """Where the others stand, as a sentence that claims no more of them than is true; "" where there are none."""
        if len(self.findings) == 1:
            return ""
        said = "The same" if self.same_words else "The same with other names"
        return f"{said}: {where(self.findings[1:], most_files, first)}."


def alike(findings: Iterable[Finding]) -> Sequence[Alike]:
    """By kind of message, in the order of the findings."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(skeleton(_without_symbol(finding)), []).append(finding)
    return [Alike(tuple(found)) for found in kinds.values()]


def _without_symbol(finding: Finding) -> str:
    """The message without the name of the function that it stands in."""
    if not finding.symbol:
        return finding.message
    return re.sub(rf"(?<![\w.]){re.escape(finding.symbol)}(?!\w)", "·", finding.message)
