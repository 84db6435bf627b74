"""What the report of a campaign says, as values: read from its ledger, the same for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ddpfix import catalog
from ddpfix.fleet.ledger import DECISION, Ledger
from ddpfix.fleet.status import Status, status

MOST = 50  # rows of a table
COLUMNS = 12  # codemods of the table by repository
DAY = 86_400.0
# upper ends of the columns of the chart, in seconds
TIMES = {
    "under an hour": 3600.0, "a day": DAY, "three days": 3 * DAY, "a week": 7 * DAY, "a month": 30 * DAY, "longer": float("inf"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holder:
    """A repository, and its findings by code."""

    name: str
    total: int
    codes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one topic's pull requests. decisions: findings of this code that people rejected in decisions files."""

    topic: str
    opened: int
    merged: int
    closed: int
    decisions: int = 0

    @property
    def decided(self) -> int:
        return self.merged + self.closed + self.decisions

    @property
    def rejected(self) -> int:
        return self.closed + self.decisions

    @property
    def refused(self) -> float:
        """The share that people said no to, of all they decided."""
        return self.rejected / self.decided if self.decided else 0.0


@dataclass(frozen=True, slots=True)
class Wave:
    """What became of one wave's pull requests."""

    number: int
    merged: int
    open: int
    closed: int

    @property
    def total(self) -> int:
        return self.merged + self.open + self.closed


@dataclass(frozen=True, slots=True)
class Rejection:
    """What somebody rejected and why. url: of the pull request, "" for a decision. source: decision or comment, "" for none."""

    name: str
    code: str
    place: str
    why: str
    source: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """All that the report shows. seconds: how long each merged pull request was open."""

    status: Status
    names: Mapping[str, str]
    holders: tuple[Holder, ...]
    fates: tuple[Fate, ...]
    waves: tuple[Wave, ...]
    seconds: tuple[float, ...]
    rejections: tuple[Rejection, ...]

    @property
    def worst(self) -> Fate | None:
        """What people refuse most, None where nothing was refused: the next bug of the codemods."""
        refused = [fate for fate in self.fates if fate.rejected]
        return max(refused, key=lambda fate: (fate.refused, fate.rejected)) if refused else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The codes of the table by repository, those in most repositories first."""
        return tuple(dict.fromkeys(c.code for c in self.status.codes))[:COLUMNS]

    @property
    def median(self) -> float | None:
        """Seconds from the opening to the merge, in the middle of all."""
        return median(self.seconds) if self.seconds else None

    @property
    def times(self) -> Mapping[str, int]:
        """Merged pull requests by how long they were open."""
        ends = [0.0, *TIMES.values()]
        return {
            name: sum(low <= seconds < high for seconds in self.seconds)
            for name, low, high in zip(TIMES, ends, TIMES.values(), strict=False)
        }


def page(ledger: Ledger) -> Page:
    names = {codemod.code: codemod.rule_name() for codemod in catalog.all_codemods()}
    seconds = ledger.rows(
        "SELECT seconds FROM decided JOIN pull USING (repository, topic) WHERE pull.state = 'merged' AND seconds > 0"
    )
    waves = ledger.rows(
        "SELECT wave, sum(state = 'merged'), sum(state = 'open'), sum(state = 'closed') FROM pull WHERE state != ''"
        " GROUP BY wave ORDER BY wave"
    )
    return Page(
        status(ledger),
        names,
        _holders(ledger),
        _fates(ledger),
        tuple(Wave(*row) for row in waves),
        tuple(float(row[0]) for row in seconds),
        _rejections(ledger),
    )


def _holders(ledger: Ledger) -> tuple[Holder, ...]:
    first = ledger.rows(
        "SELECT number, name, count(*) FROM finding JOIN repository ON number = repository GROUP BY number"
        " ORDER BY sum(level = 'safe') DESC, count(*) DESC, name LIMIT ?",
        MOST,
    )
    out = []
    for number, name, total in first:
        codes = ledger.rows("SELECT code, count(*) FROM finding WHERE repository = ? GROUP BY code", number)
        out.append(Holder(name, total, dict(codes)))
    return tuple(out)


def _fates(ledger: Ledger) -> tuple[Fate, ...]:
    pulls = ledger.rows(
        "SELECT topic, count(*), sum(state = 'merged'), sum(state = 'closed') FROM pull WHERE state != '' GROUP BY topic"
    )
    decisions = dict(ledger.rows("SELECT code, count(*) FROM rejection WHERE source = ? GROUP BY code", DECISION))
    found = {
        topic: Fate(topic, opened, merged, closed, decisions.pop(topic, 0)) for topic, opened, merged, closed in pulls
    }
    found |= {code: Fate(code, 0, 0, 0, count) for code, count in decisions.items()}
    return tuple(found[topic] for topic in sorted(found))


def _rejections(ledger: Ledger) -> tuple[Rejection, ...]:
    """Closed pull requests with what was said there, and decisions, the newest pull requests first."""
    closed = ledger.rows(
        "SELECT repository, name, topic, pull.number, pull.url FROM pull JOIN repository ON repository.number = repository"
        " WHERE pull.state = 'closed' ORDER BY opened DESC LIMIT ?",
        MOST,
    )
    said = ledger.rows("SELECT repository, code, place, why FROM rejection WHERE source = 'comment'")
    out: list[Rejection] = []
    for repository, name, topic, number, url in closed:
        words = [(code, place, why) for owner, code, place, why in said if (owner, place) == (repository, f"#{number}")]
        out += [Rejection(name, code, place, why, "comment", url) for code, place, why in words]
        if not words:
            out.append(Rejection(name, topic, f"#{number}", "", "", url))
    decided = ledger.rows(
        "SELECT name, code, place, why FROM rejection JOIN repository ON number = repository WHERE source = ? ORDER BY name, code"
        " LIMIT ?",
        DECISION,
        MOST,
    )
    return (*out, *(Rejection(name, code, place, why, DECISION) for name, code, place, why in decided))


def spoken(seconds: float) -> str:
    """A time as people say it."""
    for unit, size in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.0f} seconds"


def first_words(found: Page) -> Sequence[str]:
    """What a reader has to know first, a sentence each."""
    states = found.status.states
    done, failed, waiting = (states.get(name, 0) for name in ("done", "failed", "waiting"))
    out = [f"{found.status.total} repositories: {done} done, {failed} failed, {waiting} waiting."]
    if found.median is not None:
        out.append(f"Half of the {len(found.seconds)} merged pull requests were merged within {spoken(found.median)}.")
    if worst := found.worst:
        parts = [f"{worst.closed} closed unmerged"] if worst.closed else []
        parts += [f"{worst.decisions} rejected in decisions"] if worst.decisions else []
        out.append(f"People refuse {worst.topic} most: {', '.join(parts)}, {worst.refused:.0%} of those decided.")
    return out
