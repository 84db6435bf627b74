"""What people may ask of the bot in a comment: `/ddpfix WORD`, at the very beginning, from someone who may push."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codemods.api.codemod import DdpCodemod
from ddpfix import catalog, explain
from ddpfix.bot.body import LIMIT, fit, harmless
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Comment, Pull, Receipt
from ddpfix.bot.login import hidden
from ddpfix.bot.notes import ANSWER, note
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.publish import Asked
from ddpfix.bot.repositories import FORESEEN
from ddpfix.bot.review import review
from ddpfix.summary.markdown import prose

if TYPE_CHECKING:
    from ddpfix.bot.repositories import Bot

STRANGER = 600.0  # seconds for which nobody is asked again whether somebody may push who may not
WORDS = ("rerun", "rebuild", "ignore CODE [here|repo]", "explain CODE", "close")


class Refusal(Exception):
    """Why a command is not carried out, for the one who gave it."""


@dataclass(frozen=True, slots=True)
class Command:
    """A word and what follows it."""

    word: str
    arguments: tuple[str, ...] = ()


def parse(body: str) -> Command | None:
    """The command of a comment, None for one that only talks."""
    first = body.split("\n", 1)[0].split()
    if not first or first[0] != "/ddpfix":
        return None
    return Command(first[1].lower() if first[1:] else "", tuple(first[2:]))


def obey(bot: Bot, slug: str, number: int, comment: Comment) -> Outcome | None:
    """Carry a comment's command out, with a reaction as receipt and a reply with the reason where it is refused.

    None for a comment that is no command, or a program's own. Raises what is in `FORESEEN` where the forge itself fails.
    """
    command = parse(comment.body)
    if command is None or comment.by_bot:
        return None
    forge = bot.forge
    if not _may_push(bot, slug, comment.author):
        # no reply and no reaction: anybody could make the bot write
        return Outcome(slug, "", "ignored", f"{comment.author} may not push here", number)
    _receipt(bot, slug, number, comment, "seen")
    try:
        outcome = _carried_out(bot, slug, forge.pull(slug, number), command, comment)
        if outcome.is_error or outcome.action in ("skipped", "left-to-human"):
            raise Refusal(f"{outcome.action}: {outcome.why}")
    except (Refusal, *FORESEEN) as error:
        why = hidden(str(error), forge.secrets())
        _answer(bot, slug, number, comment, f"`/ddpfix {_word(command.word)}` was not carried out: {prose(why[:2000])}")
        _receipt(bot, slug, number, comment, "refused")
        return Outcome(slug, "", "refused-command", why, number)
    _receipt(bot, slug, number, comment, "done")
    return outcome


def _may_push(bot: Bot, slug: str, login: str) -> bool:
    """Asked anew each time, but for a no: somebody who may not push cannot make the bot ask more than once in a while."""
    now, who = bot.clock.now(), (slug, login)
    if bot.strangers.get(who, 0.0) > now:
        return False
    if bot.forge.may_write(slug, login):
        return True
    if len(bot.strangers) >= 10_000:
        bot.strangers.clear()
    bot.strangers[who] = now + STRANGER
    return False


def _receipt(bot: Bot, slug: str, number: int, comment: Comment, receipt: Receipt) -> None:
    """React to a comment. What is asked for does not hang on it: the comment may be gone, the answer lost."""
    with suppress(ForgeError):
        bot.forge.react(slug, number, comment.id, receipt)


def _answer(bot: Bot, slug: str, number: int, comment: Comment, text: str) -> None:
    """Reply to a comment; once, however often the service was ended on its way."""
    note(bot.forge, bot.seal(bot.forge.repository(slug)), slug, number, text, ANSWER, comment.id)


def _carried_out(bot: Bot, slug: str, pull: Pull, command: Command, comment: Comment) -> Outcome:
    match command.word:
        case "explain":
            codemod = _codemod(command)
            _answer(bot, slug, pull.number, comment, fit(harmless(explain.page(codemod)), LIMIT))
            return Outcome(slug, "", "explained", codemod.code, pull.number)
        case "rerun" if not _topic(bot, slug, pull):
            return review(bot, slug, pull.number)
        case "rerun":
            return _one(bot, slug, _own(bot, slug, pull), Asked())
        case "rebuild":
            return _one(bot, slug, _own(bot, slug, pull), Asked(rebuild=True))
        case "ignore":
            code, where = _codemod(command).code, (command.arguments[1:] or ("here",))[0]
            if where not in ("here", "repo"):
                raise Refusal(f"it is `here` or `repo`, not `{_word(where)}`")
            asked = Asked(here=(code,)) if where == "here" else Asked(repo=(code,))
            return _one(bot, slug, _own(bot, slug, pull), asked)
        case "close":
            topic = _own(bot, slug, pull)
            bot.forge.edit_pull(slug, pull.number, close=True)
            return Outcome(slug, topic, "closed", "as asked for", pull.number, pull.url)
    raise Refusal(f"the commands are {', '.join(f'`/ddpfix {word}`' for word in WORDS)}")


def _one(bot: Bot, slug: str, topic: str, asked: Asked) -> Outcome:
    return bot.repository(slug, only=topic, asked=asked)[0]


def _topic(bot: Bot, slug: str, pull: Pull) -> str:
    """The topic of a pull request of the bot, "" for anybody else's: who opened it the forge knows, and nobody can forge."""
    prefix = f"{bot.options.prefix}/"
    own = pull.author.lower() == bot.forge.account(slug).lower()
    return pull.branch.removeprefix(prefix) if own and pull.inside and pull.branch.startswith(prefix) else ""


def _own(bot: Bot, slug: str, pull: Pull) -> str:
    if topic := _topic(bot, slug, pull):
        return topic
    raise Refusal("this pull request is not one that ddpfix opened")


def _codemod(command: Command) -> DdpCodemod:
    if not command.arguments:
        raise Refusal(f"say which codemod: `/ddpfix {command.word} DDP101`")
    try:
        return catalog.lookup(command.arguments[0])
    except catalog.UnknownSelector:
        raise Refusal(f"there is no codemod `{_word(command.arguments[0])}`") from None


def _word(text: str) -> str:
    """What somebody wrote, fit to be repeated: short, and no mark-up."""
    return "".join(c for c in text if c.isalnum() or c in "-_")[:40]
