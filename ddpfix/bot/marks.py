"""The bot's memory on the forge: a comment that a reader does not see, signed, at the end of a text of its own.

The bot's texts quote source code, file names and settings that strangers wrote, and people write beside them. So a mark counts
only in a text whose author is the bot's own account, only the last one in it, and only with a code that the key of this
installation made (HMAC-SHA256, RFC 2104) for that repository and that place.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ddpfix.bot.forge import Comment, Pull

_BLOCK = re.compile(r"<!-- ddpfix:(\w+)((?: \w+=[^\s<>]*)*) mac=([0-9a-f]{64}) -->")
_TICKED = re.compile(r"[-*] \[[xX]\] ")


@dataclass(frozen=True, slots=True)
class Marks:
    """topic: of the branch. head, base, run: as last pushed. here, repo: codes to be left out, there and in the settings.

    closed: the bot closed it, so that nobody has said no. lines: what the bot wrote, a few characters a line (`body.traces`).
    """

    topic: str
    head: str = ""
    base: str = ""
    tool: str = ""
    here: tuple[str, ...] = ()
    repo: tuple[str, ...] = ()
    closed: bool = False
    run: str = ""
    lines: str = ""


@dataclass(frozen=True, slots=True)
class Seal:
    """Signs marks, and believes those it has signed. account: the bot's login. repository: its number, which stays when it is
    renamed.
    """

    key: bytes = field(repr=False)
    account: str
    repository: str

    def is_own(self, author: str) -> bool:
        return bool(author) and author.lower() == self.account.lower()

    def block(self, kind: str, place: str, **fields: str) -> str:
        """A mark of some kind for one place: the branch of a pull request, or its number and what a comment is about."""
        said = "".join(f" {name}={value}" for name, value in fields.items() if value)
        return f"<!-- ddpfix:{kind}{said} mac={self._code(kind, place, said)} -->"

    def of_pull(self, branch: str, marks: Marks) -> str:
        here, repo = ",".join(marks.here), ",".join(marks.repo)
        return self.block(
            "pr", branch, topic=marks.topic, head=marks.head, base=marks.base, tool=marks.tool, run=marks.run,
            here=here, repo=repo, closed="bot" if marks.closed else "", lines=marks.lines,
        )  # fmt: skip

    def left(self, pull: Pull) -> Marks | None:
        """What the bot left in a pull request of its own; None for one that it did not open, or whose marks are not its own."""
        found = self.cut(pull) if self.is_own(pull.author) else None
        return found[1] if found else None

    def cut(self, pull: Pull) -> tuple[str, Marks, str] | None:
        """A body as (what stands above the mark, the mark, what stands below), whoever opened the pull request."""
        found = self._last("pr", pull.branch, pull.body)
        if found is None:
            return None
        said, block = found
        here, repo = (tuple(code for code in said.get(name, "").split(",") if code) for name in ("here", "repo"))
        marks = Marks(
            said.get("topic", ""), said.get("head", ""), said.get("base", ""), said.get("tool", ""), here, repo,
            "closed" in said, said.get("run", ""), said.get("lines", ""),
        )  # fmt: skip
        return pull.body[: block.start()], marks, pull.body[block.end() :]

    def bears(self, comment: Comment, kind: str, place: str) -> bool:
        """Whether a comment is the bot's own with that mark."""
        return self.holds(comment.author, comment.body, kind, place)

    def holds(self, author: str, text: str, kind: str, place: str) -> bool:
        """Whether a text is the bot's own with that mark at its end."""
        return self.is_own(author) and self._last(kind, place, text) is not None

    def ticked(self, text: str, kind: str, place: str) -> list[str]:
        """The topics of the boxes that somebody ticked, in a text that the bot wrote."""
        rows = (row for row in text.splitlines() if _TICKED.match(row))
        found = (self._last(kind, place, row) for row in rows)
        return [said.get("topic", "") for said, _ in filter(None, found)]

    def _last(self, kind: str, place: str, text: str) -> tuple[Mapping[str, str], re.Match[str]] | None:
        found = list(_BLOCK.finditer(text))
        block = found[-1] if found else None
        if block is None or block[1] != kind or not hmac.compare_digest(block[3], self._code(kind, place, block[2])):
            return None
        return dict(part.split("=", 1) for part in block[2].split()), block

    def _code(self, kind: str, place: str, said: str) -> str:
        signed = "\0".join((self.repository, kind, place, said)).encode("utf-8", "surrogatepass")
        return hmac.new(self.key, signed, hashlib.sha256).hexdigest()
