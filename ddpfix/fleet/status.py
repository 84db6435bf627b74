"""Where a campaign stands: numbers, read from its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ddpfix.fleet.ledger import DONE, FAILED, Ledger


@dataclass(frozen=True, slots=True)
class ByCode:
    """Findings of one codemod at one level, and the repositories that have them."""

    code: str
    level: str
    findings: int
    repositories: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A repository without a result: which, and why."""

    name: str
    cause: str
    error: str


@dataclass(frozen=True, slots=True)
class Status:
    """states: waiting, running, done, failed -> repositories. pulls: open, merged, closed, and what the bot did -> pull requests.

    seconds: of work, all repositories together.
    """

    name: str
    paused: bool
    states: Mapping[str, int]
    empty: int
    causes: Mapping[str, int]
    codes: tuple[ByCode, ...]
    pulls: Mapping[str, int]
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
    ((seconds,),) = ledger.rows("SELECT coalesce(sum(seconds), 0) FROM repository")
    ((empty,),) = ledger.rows("SELECT count(*) FROM repository WHERE state = ? AND head = ''", DONE)
    causes: dict[str, int] = {}
    for _, cause, _ in failed:
        causes[cause] = causes.get(cause, 0) + 1
    pulls = dict(ledger.rows("SELECT CASE state WHEN '' THEN action ELSE state END, count(*) FROM pull GROUP BY 1"))
    return Status(
        campaign.name, ledger.is_paused(), ledger.counts(), empty, causes, tuple(ByCode(*row) for row in codes), pulls,
        tuple(Failed(*row) for row in failed), round(float(seconds), 1),
    )  # fmt: skip


def lines(found: Status) -> list[str]:
    """The status for people, a line each."""
    order = ("waiting", "running", "done", "failed")
    said = ", ".join(f"{found.states[state]} {state}" for state in order if found.states.get(state))
    out = [f"{found.name}: {found.total} repositories: {said or 'none'}" + (" (paused)" if found.paused else "")]
    if found.empty:
        out.append(f"{found.empty} of the done ones are empty")
    out += [f"failed, {cause}: {count}" for cause, count in sorted(found.causes.items(), key=lambda row: (-row[1], row[0]))]
    out += [f"{c.code} {c.level}: {c.findings} in {c.repositories} repositories" for c in found.codes]
    out += [f"pull requests, {state}: {count}" for state, count in sorted(found.pulls.items())]
    return out
