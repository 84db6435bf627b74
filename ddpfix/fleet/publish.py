"""Pull requests for a campaign, in waves: ten, then a hundred, then the rest, as long as few are closed unmerged.

Only this writes to a forge, through the bot, with the bot's own rules: what a repository's settings refuse stays refused, and a
pull request that somebody closed or changed is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ddpfix.bot.body import harmless
from ddpfix.bot.outcome import Outcome
from ddpfix.fleet.ledger import COMMENT, Campaign, Ledger
from ddpfix.fleet.result import storable
from ddpfix.summary.markdown import prose

if TYPE_CHECKING:
    from ddpfix.bot.client import ForgeError
    from ddpfix.bot.forge import Forge
    from ddpfix.bot.repositories import Bot

MADE = ("created", "updated", "unchanged", "left-to-human")
OF_ONE = (403, 404, 409, 410, 422, 451)  # what a forge answers for one repository; anything else is about all of them
LONGEST = 500  # characters of a comment that the report shows
Tell = Callable[[Outcome], None]


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
    wanted = ledger.to_publish()
    left = ledger.wave_left() if 0 < done <= len(waves.sizes) else frozenset()
    if unfinished := [row for row in wanted if row[0] in left]:
        return done, unfinished
    size = waves.sizes[done] if done < len(waves.sizes) else len(wanted)
    return done + 1, wanted[:size]


def publish(ledger: Ledger, bot: Bot, wave: int, repositories: Sequence[tuple[int, str]], tell: Tell) -> None:
    """Bring the pull requests of a wave into being. What was deferred or failed is kept with its reason, and a later run tries it
    again.

    A wave that was cut short, by a kill or by the pull requests of the hour, is the next one again: it would otherwise be
    followed by a larger one before anybody has seen it.
    """
    from ddpfix.bot import dashboard
    from ddpfix.bot.repositories import guarded

    left = {number for number, _ in repositories}
    ledger.keep_wave_left(left)
    for number, name in repositories:
        outcomes = guarded(bot.forge, name, partial(bot.repository, name))
        for outcome in outcomes:
            tell(outcome)
            if outcome.topic == dashboard.KIND:  # an issue beside, and no pull request
                continue
            is_open = outcome.action not in ("deferred", "failed", "refused")
            ledger.keep_unpublished(number, "" if is_open else outcome.action, storable(outcome.why))
            if outcome.action in ("deferred", "failed"):
                continue
            state = "open" if outcome.action in MADE and outcome.number else ""
            said = (outcome.topic, outcome.action, storable(outcome.why), outcome.number, storable(outcome.url))
            ledger.keep_pull((number, *said, wave, state, time.time()))
        if not any(outcome.action == "deferred" for outcome in outcomes):
            left.discard(number)
            ledger.keep_wave_left(left)


def cover(campaign: Campaign) -> str:
    """What stands above the text of each pull request of a campaign: its name and its cover text."""
    if not campaign.cover.strip():
        return ""
    return harmless(f"**{prose(campaign.name)}**\n\n{campaign.cover.strip()}")


def refresh(ledger: Ledger, forge: Forge, tell: Tell) -> int:
    """Ask the forge what became of the open pull requests, many in one request. How many are no longer open.

    Of one that was closed unmerged it is asked what people said there. Raises ForgeError where the forge does not answer.
    """
    changed = 0
    rows = _open(ledger)
    fates = forge.fates([(name, pull) for _, name, _, pull in rows])
    for number, name, topic, pull in rows:
        fate = fates.get((name, pull))
        if (name, pull) in fates and fate is None:
            tell(Outcome(name, topic, "gone", "the forge no longer has it", pull))
            ledger.set_pull_state(number, topic, "gone")
            changed += 1
        elif fate and fate.state != "open":
            at = fate.decided or time.time()
            ledger.set_pull_state(number, topic, fate.state, at=at, seconds=max(0.0, at - fate.opened) if fate.opened else 0.0)
            if fate.state == "closed":
                ledger.keep_rejections(number, COMMENT, _said(forge, name, topic, pull, tell))
            changed += 1
    return changed


def _said(forge: Forge, slug: str, topic: str, pull: int, tell: Tell) -> list[tuple[str, str, str]]:
    """(topic, where, words) of what people said in a pull request that was closed; commands but for `ignore` are no reason."""
    from ddpfix.bot.client import ForgeError
    from ddpfix.bot.commands import parse

    try:
        comments = forge.comments(slug, pull)
    except ForgeError as error:
        tell(_failed(forge, slug, topic, pull, error))
        return []
    own = forge.account(slug).lower()
    people = [comment for comment in comments if not comment.by_bot and comment.author.lower() != own]
    rows = []
    for comment in people:
        command, words = parse(comment.body), storable(" ".join(comment.body.split())[:LONGEST])
        code = command.arguments[0].upper() if command and command.arguments else topic
        if words and (command is None or command.word == "ignore"):
            rows.append((code, f"#{pull}", words))
    return rows


def close_all(ledger: Ledger, forge: Forge, why: str, tell: Tell) -> tuple[int, int]:
    """Close what is still open, with a comment that says why; the branches stay. How many were closed, and how many were not.

    Raises ForgeError as `refresh` does.
    """
    from ddpfix.bot.client import ForgeError

    refresh(ledger, forge, tell)
    closed = failed = 0
    for number, name, topic, pull in _open(ledger):
        try:
            forge.comment(name, pull, harmless(prose(why)))
            forge.edit_pull(name, pull, close=True)
        except ForgeError as error:
            tell(_failed(forge, name, topic, pull, error))
            failed += 1
            continue
        ledger.set_pull_state(number, topic, "withdrawn")
        closed += 1
    return closed, failed


def _failed(forge: Forge, slug: str, topic: str, number: int, error: ForgeError) -> Outcome:
    """What to tell of a request about one repository. Raises the error again where it is about all of them."""
    from ddpfix.bot.login import hidden

    if error.status not in OF_ONE:
        raise error
    return Outcome(slug, topic, "failed", hidden(str(error), forge.secrets()), number)


def _open(ledger: Ledger) -> list[tuple[int, str, str, int]]:
    return ledger.rows(
        "SELECT repository, name, topic, pull.number FROM pull JOIN repository ON repository.number = repository"
        " WHERE pull.state = 'open' AND pull.number IS NOT NULL ORDER BY repository, topic"
    )
