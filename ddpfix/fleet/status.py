"""Where a campaign stands: numbers, read from its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ddpfix.fleet.ledger import DONE, FAILED, RUNNING, WAITING, Ledger

PULLS = ("open", "merged", "closed", "withdrawn", "gone")


@dataclass(frozen=True, slots=True)
class ByCode:
    """Findings of one codemod at one level, and the repositories that have them."""

    code: str
    level: str
    findings: int
    repositories: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A repository without a result, or without its pull request: which, and why."""

    name: str
    cause: str
    error: str


@dataclass(frozen=True, slots=True)
class Status:
    """states: waiting, running, done, failed -> repositories. pulls: open, merged, closed, withdrawn (by ourselves), gone, and
    what else the bot did -> pull requests. unpublished: repositories for which no pull request could be opened.

    wave: the last that began. to_publish: repositories with a safe fix and without a pull request. seconds: of work, all
    repositories together.
    """

    name: str
    paused: bool
    states: Mapping[str, int]
    empty: int
    causes: Mapping[str, int]
    codes: tuple[ByCode, ...]
    pulls: Mapping[str, int]
    unpublished: tuple[Failed, ...]
    wave: int
    to_publish: int
    failed: tuple[Failed, ...]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.states.values())

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "total": self.total}


def status(ledger: Ledger) -> Status:
    campaign = ledger.campaign()
    codes = ledger.rows(
        "SELECT code, level, count(*), count(DISTINCT repository) FROM finding GROUP BY code, level"
        " ORDER BY count(DISTINCT repository) DESC, code, level"
    )
    failed = ledger.rows("SELECT name, cause, error FROM repository WHERE state = ? ORDER BY cause, name", FAILED)
    unpublished = ledger.rows(
        "SELECT name, action, why FROM unpublished JOIN repository ON number = repository ORDER BY action, name"
    )
    ((seconds,),) = ledger.rows("SELECT coalesce(sum(seconds), 0) FROM repository")
    ((empty,),) = ledger.rows("SELECT count(*) FROM repository WHERE state = ? AND head = ''", DONE)
    ((wave,),) = ledger.rows("SELECT coalesce(max(wave), 0) FROM pull")
    return Status(
        campaign.name,
        ledger.is_paused(),
        ledger.counts(),
        empty,
        dict(ledger.rows("SELECT cause, count(*) FROM repository WHERE state = ? GROUP BY cause", FAILED)),
        tuple(ByCode(*row) for row in codes),
        dict(ledger.rows("SELECT CASE state WHEN '' THEN action ELSE state END, count(*) FROM pull GROUP BY 1")),
        tuple(Failed(*row) for row in unpublished),
        wave,
        len(ledger.to_publish()),
        tuple(Failed(*row) for row in failed),
        round(float(seconds), 1),
    )


def lines(found: Status) -> list[str]:
    """The status for people, a line each."""
    order = (WAITING, RUNNING, DONE, FAILED)
    said = ", ".join(f"{found.states[state]} {state}" for state in order if found.states.get(state))
    out = [f"{found.name}: {found.total} repositories: {said or 'none'}" + (" (paused)" if found.paused else "")]
    if found.empty:
        out.append(f"{found.empty} of the done ones are empty")
    out += [f"failed, {cause}: {count}" for cause, count in sorted(found.causes.items(), key=lambda row: (-row[1], row[0]))]
    out += [f"{c.code} {c.level}: {c.findings} in {c.repositories} repositories" for c in found.codes]
    if found.wave:
        out.append(f"wave {found.wave} was the last; {found.to_publish} repositories with a safe fix have no pull request")
    known = [state for state in PULLS if found.pulls.get(state)]
    others = sorted(set(found.pulls) - set(PULLS))
    out += [f"pull requests, {state}: {found.pulls[state]}" for state in (*known, *others)]
    actions = {row.cause for row in found.unpublished}
    for action in sorted(actions):
        rows = [row for row in found.unpublished if row.cause == action]
        out.append(f"without a pull request, {action}: {len(rows)}, such as {rows[0].name}: {rows[0].error}")
    return out
