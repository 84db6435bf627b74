"""Findings over the rounds of a run: which of a later round is an earlier one that reads differently, and which a fix brought up.

Where findings are accepted one by one, what nobody could have seen in the first round goes with what it comes from. What an
earlier round wrote is evidence of nothing: it makes no finding surer, and none in a file that it left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from codemods.api.findings import Finding, Fix
from codemods.engine.user_edits import EditedLines
from codemods.runtime.record import replace

Said = Callable[[Finding], bool | None]


class Lineage:
    """The findings of one run, round by round. An id that stays is the same finding.

    A finding that vanishes unfixed while one of the same code, path and symbol appears is that one, reworded by a fix inside of
    it. Any other new one comes from the fixes of the round before: from those of its function, else of its file, else of all.
    """

    def __init__(self, first: Iterable[Finding]) -> None:
        self._now = {f.id: f for f in first}
        self.first = dict(self._now)
        self._reworded: dict[str, tuple[Finding, ...]] = {}
        self._causes: dict[str, tuple[Finding, ...]] = {}

    def next_round(self, made: Sequence[Finding], left: Sequence[Finding], by_hand: Iterable[str] = ()) -> None:
        """`left` is found after `made` were fixed; of these, `by_hand` got lines that a person wrote, which cause nothing."""
        fixed, theirs = {f.id for f in made}, set(by_hand)
        causes = [f for f in made if f.id not in theirs]
        now = {f.id: f for f in left}
        gone: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in self._now.values():
            if finding.id not in now and finding.id not in fixed:
                gone.setdefault(_place(finding), []).append(finding)
        fresh: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in left:
            if finding.id not in self.first and finding.id not in self._causes and finding.id not in self._reworded:
                fresh.setdefault(_place(finding), []).append(finding)
        for place, findings in fresh.items():
            earlier = gone.get(place, [])
            for i, finding in enumerate(findings):
                if earlier:
                    alike = len(earlier) == len(findings)
                    self._reworded[finding.id] = (earlier[i],) if alike else tuple(earlier)
                elif any(_place(f) == place for f in made if f.id in theirs):
                    self._causes[finding.id] = ()  # found again where a person had the last word
                else:
                    self._causes[finding.id] = tuple(_nearest(finding, causes))
        self._now = now

    def on_the_text_as_it_was(self, left: Sequence[Finding], changed: Iterable[str]) -> list[Finding]:
        """`left` of a later round, no finding surer than it was at first; without those that only come of what was written in
        `changed`, other files than theirs.
        """
        written = set(changed)
        out = []
        for finding in left:
            known = self.first.get(self.origin(finding))
            if known is None and not self._reworded.get(finding.id) and not written & {finding.path, *_paths(finding)}:
                continue
            surer = known is not None and known.applicability.rank < finding.applicability.rank
            out.append(_at_level_of(known, finding) if known is not None and surer else finding)
        return out

    def as_found_first(self, left: Sequence[Finding], attempted: Collection[str]) -> list[Finding]:
        """`left` of the last round with the levels and reasons of the first, but for what was to be fixed and could not be."""
        out = []
        for finding in left:
            known = self.first.get(self.origin(finding))
            same = known is None or known.id in attempted or finding.id in attempted
            out.append(finding if known is None or same else _at_level_of(known, finding))
        return out

    def accepts(self, finding: Finding, say: Said) -> bool:
        """Whether a finding is accepted: as `say` has it; where it says nothing of one that was not there at first, as what it
        comes from is, unless it is less sure than that.
        """
        said = say(finding)
        if said is not None:
            return said
        rank = finding.applicability.rank
        if earlier := self._reworded.get(finding.id):
            return all(f.applicability.rank <= rank and self.accepts(f, say) for f in earlier)
        return any(f.applicability.rank <= rank for f in self._causes.get(finding.id, ()))

    def origin(self, finding: Finding) -> str:
        """The id under which it was there at first; its own where it was not."""
        earlier = self._reworded.get(finding.id, ())
        return self.origin(earlier[0]) if len(earlier) == 1 else finding.id

    def edited(self, finding: Finding, edited: Mapping[str, Sequence[EditedLines]]) -> tuple[Sequence[EditedLines], int]:
        """(the lines a person wrote in the place of its fix, by how many lines it stands lower than at first)."""
        origin = self.origin(finding)
        if origin not in edited or origin not in self.first:
            return (), 0
        return edited[origin], finding.span.line - self.first[origin].span.line


def _at_level_of(first: Finding, now: Finding) -> Finding:
    """The finding as it stands now with the level and the reason that it had at first."""
    if first.applicability is now.applicability:
        return now
    edits = now.fix.edits if first.fix is not None and now.fix is not None else ()
    fix = None if first.fix is None else Fix(first.applicability, edits, now.fix.group if now.fix else "")
    return replace(now, fix=fix, reason=first.reason)


def _paths(finding: Finding) -> Iterator[str]:
    return (edit.path for edit in finding.edits)


def _place(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.path, finding.symbol


def _nearest(finding: Finding, made: Sequence[Finding]) -> Sequence[Finding]:
    in_file = [f for f in made if any(e.path == finding.path for e in f.edits)]
    return [f for f in in_file if f.symbol == finding.symbol] or in_file or made
