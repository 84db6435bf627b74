"""What is thought of a change so far: a level, which each doubt lowers, with its reasons and evidence."""

from __future__ import annotations

from codemods.api.findings import Applicability, Evidence, lowest
from codemods.runtime.record import field, record


@record(frozen=False)
class Verdict:
    """The level so far, with every reason that lowered it and every fact that carries it. reduce_fx: what the ranks' values are
    put together by, where that is no mean and is to be written, too. sync_dist: what is to be given for it.
    """

    level: Applicability = Applicability.SAFE
    reasons: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    reduce_fx: str = ""
    sync_dist: str = "True"

    def lower(self, level: Applicability, reason: str) -> None:
        if level.rank < self.level.rank:
            self.reasons.clear()
        if level.rank <= self.level.rank and reason not in self.reasons:
            self.reasons.append(reason)
        self.level = lowest(self.level, level)

    def note(self, text: str, path: str, line: int, kind: str = "static") -> None:
        self.evidence.append(Evidence(kind, text, path, line))

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons[:2])
