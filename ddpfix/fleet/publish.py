"""Pull requests for a campaign, in waves: ten, then a hundred, then the rest, as long as few are closed unmerged.

Only this writes to a forge, through the bot, with the bot's own rules: what a repository's settings refuse stays refused, and a
pull request that somebody closed or changed is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ddpfix.bot.body import harmless
from ddpfix.fleet.ledger import DONE, Ledger
from ddpfix.summary.markdown import prose

if TYPE_CHECKING:
    from ddpfix.bot.forge import Forge
    from ddpfix.bot.outcome import Outcome

MADE = ("created", "updated", "unchanged", "left-to-human")


class Worker(Protocol):
    """What works on one repository: `ddpfix.bot.repositories.Bot`."""

    def repository(self, slug: str) -> list[Outcome]: ...


class NotYet(Exception):
    """Why the next wave does not begin."""


class BadWaves(Exception):
    """Waves that cannot be, and why."""


@dataclass(frozen=True, slots=True)
class Waves:
    """sizes: repositories of each wave; after the last one all the rest. most_closed: the share of decided pull requests that may
    have been closed unmerged before the next wave, 0.05 for 5 %.
    """

    sizes: tuple[int, ...]
    most_closed: float


def parse(word: str, most_closed: str) -> Waves:
    """`10,100` and `5%`. Raises BadWaves."""
    sizes = [part.strip() for part in word.split(",") if part.strip()]
    if not all(size.isascii() and size.isdigit() and int(size) > 0 for size in sizes):
        raise BadWaves(f"{word!r} are no waves: write numbers of repositories, such as 10,100")
    share = most_closed.removesuffix("%")
    try:
        number = float(share)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise BadWaves(f"{most_closed!r} is no share: write a percentage, such as 5%")
    return Waves(tuple(int(size) for size in sizes), number / 100)


def next_wave(ledger: Ledger, waves: Waves) -> tuple[int, list[tuple[int, str]]]:
    """The number of the next wave (from 1) and its repositories (number, name): those with a safe fix and no pull request yet.

    Raises NotYet where too many of the earlier ones were closed.
    """
    ((done,),) = ledger.rows("SELECT coalesce(max(wave), 0) FROM pull")
    decided = dict(ledger.rows("SELECT state, count(*) FROM pull WHERE state IN ('merged', 'closed') GROUP BY state"))
    closed, total = decided.get("closed", 0), sum(decided.values())
    if done and total and closed / total > waves.most_closed:
        raise NotYet(
            f"{closed} of the {total} pull requests that were decided were closed unmerged, more than {waves.most_closed:.0%}"
        )
    wanted = ledger.rows(
        "SELECT number, name FROM repository WHERE state = ? AND number IN (SELECT repository FROM finding WHERE level = 'safe')"
        " AND number NOT IN (SELECT repository FROM pull) ORDER BY number",
        DONE,
    )
    size = waves.sizes[done] if done < len(waves.sizes) else len(wanted)
    return done + 1, wanted[:size]


def publish(
    ledger: Ledger, bot: Worker, wave: int, repositories: Sequence[tuple[int, str]], tell: Callable[[Outcome], None]
) -> None:
    """Bring the pull requests of a wave into being. What was deferred or failed is not kept, so the next run tries it again."""
    for number, name in repositories:
        for outcome in bot.repository(name):
            tell(outcome)
            if outcome.action in ("deferred", "failed"):
                continue
            state = "open" if outcome.action in MADE and outcome.number else ""
            row = (number, outcome.topic, outcome.action, outcome.why, outcome.number, outcome.url, wave, state, time.time())
            ledger.keep_pull(row)


def refresh(ledger: Ledger, forge: Forge) -> int:
    """Ask the forge what became of the open pull requests. How many are no longer open."""
    changed = 0
    for number, name, topic, pull in _open(ledger):
        state = forge.pull(name, pull).state
        if state != "open":
            ledger.set_pull_state(number, topic, state)
            changed += 1
    return changed


def close_all(ledger: Ledger, forge: Forge, why: str) -> int:
    """Close what is still open, with a comment that says why; the branches stay. How many were closed."""
    closed = 0
    for number, name, topic, pull in _open(ledger):
        if forge.pull(name, pull).state == "open":
            forge.comment(name, pull, harmless(prose(why)))
            forge.edit_pull(name, pull, close=True)
            ledger.set_pull_state(number, topic, "withdrawn")
            closed += 1
    return closed


def _open(ledger: Ledger) -> list[tuple[int, str, str, int]]:
    return ledger.rows(
        "SELECT repository, name, topic, pull.number FROM pull JOIN repository ON repository.number = repository"
        " WHERE pull.state = 'open' AND pull.number IS NOT NULL ORDER BY repository, topic"
    )
