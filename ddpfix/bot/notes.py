"""The bot's comments on a pull request: one of a kind, kept up to date, found by its mark."""

from __future__ import annotations

from ddpfix.bot.body import harmless
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Forge
from ddpfix.bot.marks import Seal

NOTE, REVIEW, ANSWER = "note", "review", "answer"


def place(number: int, about: object = "") -> str:
    """Where a mark of a comment holds. about: what it is about, where there are several of a kind."""
    return f"{number}/{about}"


def note(forge: Forge, seal: Seal, slug: str, number: int, text: str, kind: str = NOTE, about: object = "") -> bool:
    """Write the bot's comment of that kind or bring it up to date; whether anything had to be written.

    Raises ForgeError.
    """
    where = place(number, about)
    wanted = f"{harmless(text)}\n\n{seal.block(kind, where)}"
    for attempt in range(2):
        for comment in forge.comments(slug, number):
            if seal.bears(comment, kind, where):
                if plain(comment.body) == plain(wanted):
                    return attempt > 0
                forge.edit_comment(slug, number, comment.id, wanted)
                return True
        try:
            forge.comment(slug, number, wanted)
            return True
        except ForgeError as error:
            if not error.unsure or attempt:
                raise
    return True


def plain(text: str) -> str:
    """A text as it can be compared with what a forge gives back."""
    return text.replace("\r\n", "\n").strip()
