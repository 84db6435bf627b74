"""Going through the findings one by one: what is decided, what is open, where one stands. No screen and no file in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ddpfix.decisions import Decision, Decisions, Verdict
from ddpfix.review.items import Review, ReviewItem


@dataclass(frozen=True, slots=True)
class Carried:
    """Saved decisions as they hold for the project as it is now.

    stale_base: the commit they were made on, where HEAD is another. kept: ids that still name a finding with the same text.
    dropped: ids that, then, name none.
    """

    decisions: Decisions
    stale_base: str = ""
    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def carried(saved: Decisions, found: Review) -> Carried:
    """Saved decisions over to a new look at the project. On the same commit all are kept: one may look at a part of it only."""
    here = found.by_id
    kept = tuple(key for key in saved.of if key in here)
    if not saved.base or not found.base or saved.base == found.base:
        return Carried(Decisions(found.base or saved.base, dict(saved.of)), "", kept)
    dropped = tuple(key for key in saved.of if key not in here)
    return Carried(Decisions(found.base, {key: saved.of[key] for key in kept}), saved.base, kept, dropped)


class Session:
    """A review under way. `save` is called with all decisions after each one.

    A finding that belongs to a group is decided with its mates: they are fixed together or not at all.
    """

    def __init__(
        self, found: Review, decisions: Decisions, save: Callable[[Decisions], None], *, again: bool = False
    ) -> None:
        self.found, self.items = found, found.items
        self._by_id = found.by_id
        self._base, self._of, self._save = decisions.base, dict(decisions.of), save
        self._passed: set[str] = set()  # left open on purpose, or told and read
        self._shown: list[int] = []
        self._again = again
        self.at = -1
        self.go_on()

    # Where one stands

    @property
    def current(self) -> ReviewItem | None:
        return self.items[self.at] if 0 <= self.at < len(self.items) else None

    def go_on(self) -> None:
        """To the next finding that waits for a decision: below this one, else from the top."""
        order = [*range(self.at + 1, len(self.items)), *range(max(self.at, 0))]
        waiting = [i for i in order if self._waits(self.items[i])]
        if self.current is not None:
            self._shown.append(self.at)
        self.at = waiting[0] if waiting else len(self.items)

    def back(self) -> bool:
        """To the finding that was shown before; False where this is the first."""
        if not self._shown:
            return False
        self.at = self._shown.pop()
        return True

    def _waits(self, item: ReviewItem) -> bool:
        if item.id in self._passed:
            return False
        return self._again or item.id not in self._of

    # Deciding

    @property
    def decisions(self) -> Decisions:
        return Decisions(self._base, dict(self._of))

    def decision(self, item: ReviewItem) -> Decision | None:
        return self._of.get(item.id)

    def decide(self, items: Iterable[ReviewItem], decision: Decision) -> int:
        """The same decision for several findings and their mates; what cannot be accepted is passed over. How many it were."""
        wanted = {i.id: i for item in items for i in (item, *self._mates(item))}
        done = [i for i in wanted.values() if decision.verdict == "reject" or i.acceptable]
        for item in done:
            edited = decision.edited if len(wanted) == 1 else ()
            self._of[item.id] = Decision(decision.verdict, decision.reason, edited)
            self._passed.add(item.id)
        if done:
            self._save(self.decisions)
        return len(done)

    def edit(self, item: ReviewItem, decision: Decision) -> None:
        """Accept one finding with lines of the reviewer's own; its mates are accepted as they are."""
        self.decide([item], Decision("accept"))
        self._of[item.id] = decision
        self._save(self.decisions)

    def leave_open(self, item: ReviewItem) -> None:
        """Go on without a decision; an earlier one is undone."""
        if self._of.pop(item.id, None) is not None:
            self._save(self.decisions)
        self.pass_by(item)

    def pass_by(self, item: ReviewItem) -> None:
        """Go on and change nothing."""
        self._passed.add(item.id)
        self.go_on()

    def _mates(self, item: ReviewItem) -> list[ReviewItem]:
        return [self._by_id[key] for key in item.mates if key in self._by_id]

    # Several at once

    def open_items(self) -> list[ReviewItem]:
        return [i for i in self.items if i.id not in self._of]

    def in_file(self, item: ReviewItem) -> list[ReviewItem]:
        return self._like(item, lambda other: other.finding.path == item.finding.path)

    def of_kind(self, item: ReviewItem) -> list[ReviewItem]:
        return self._like(item, lambda other: other.finding.code == item.finding.code)

    def rest(self, item: ReviewItem, verdict: Verdict) -> list[ReviewItem]:
        """This one and all that are open; to accept, of the others the safe ones only: each assumption is looked at alone."""
        return self._like(item, lambda other: verdict == "reject" or other.level == "safe")

    def _like(self, item: ReviewItem, alike: Callable[[ReviewItem], bool]) -> list[ReviewItem]:
        """Open findings and `item` itself; those without a fix only where it has none either."""
        others = [i for i in self.open_items() if i is not item and alike(i) and (i.acceptable or not item.acceptable)]
        return [item, *others]

    def counts(self) -> Mapping[str, int]:
        """accepted, rejected, open (with a fix), reported (without one, and not rejected)."""
        verdicts = [(i, self._of.get(i.id)) for i in self.items]
        return {
            "accepted": sum(d is not None and d.verdict == "accept" for _, d in verdicts),
            "rejected": sum(d is not None and d.verdict == "reject" for _, d in verdicts),
            "open": sum(d is None and i.acceptable for i, d in verdicts),
            "reported": sum(d is None and not i.acceptable for i, d in verdicts),
        }


def levels(items: Sequence[ReviewItem]) -> str:
    """`7 findings, 2 of them unsafe`."""
    unsafe = sum(i.level == "unsafe" for i in items)
    text = f"{len(items)} finding{'' if len(items) == 1 else 's'}"
    return f"{text}, {unsafe} of them unsafe" if unsafe else text
