"""The bot's memory: comments in the body of a pull request that a reader does not see. There is no database."""

from __future__ import annotations

import re
from dataclasses import dataclass

NOTE = "<!-- ddpfix:note -->"  # the one comment that is kept up to date
REVIEW = "<!-- ddpfix:review -->"
_PR = re.compile(r"<!-- ddpfix:pr topic=(\S+) -->")
_STATE = re.compile(r"<!-- ddpfix:state head=([0-9a-f]{40,64}) base=([0-9a-f]{40,64}) tool=(\S+)(?: run=(\w+))? -->")
_IGNORED = re.compile(r"<!-- ddpfix:ignore here=(\S*) repo=(\S*) -->")
_CLOSED = "<!-- ddpfix:closed by=bot -->"


@dataclass(frozen=True, slots=True)
class Marks:
    """topic: of the branch. head, base, run: as last pushed. here, repo: codes to be left out, there and in the settings.

    closed: the bot closed it, so that nobody has said no.
    """

    topic: str
    head: str = ""
    base: str = ""
    tool: str = ""
    here: tuple[str, ...] = ()
    repo: tuple[str, ...] = ()
    closed: bool = False
    run: str = ""

    def text(self) -> str:
        out = [f"<!-- ddpfix:pr topic={self.topic} -->"]
        if self.head:
            run = f" run={self.run}" if self.run else ""
            out.append(f"<!-- ddpfix:state head={self.head} base={self.base} tool={self.tool}{run} -->")
        if self.here or self.repo:
            out.append(f"<!-- ddpfix:ignore here={','.join(self.here)} repo={','.join(self.repo)} -->")
        if self.closed:
            out.append(_CLOSED)
        return "\n".join(out)


def read(body: str) -> Marks | None:
    """The marks of a body, None for one that the bot did not write."""
    found = _PR.findall(body)
    if not found:
        return None
    head, base, tool, run = (_STATE.findall(body) or [("", "", "", "")])[-1]
    here, repo = (_IGNORED.findall(body) or [("", "")])[-1]
    return Marks(found[-1], head, base, tool, _codes(here), _codes(repo), _CLOSED in body, run)


def suggestion(finding: str) -> str:
    return f"<!-- ddpfix:suggestion {finding} -->"


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in text.split(",") if re.fullmatch(r"DDP\d{3}", code))
