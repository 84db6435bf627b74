"""The forge of a campaign: where it is, who may read there, what it lists, and which of its repositories stand as they stood.

Only what reads is here; its token is the one that workers have (`repositories.access`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ddpfix.fleet.ledger import Ledger, Taken
from ddpfix.fleet.repositories import Target, read_token
from ddpfix.fleet.result import Result

if TYPE_CHECKING:
    from ddpfix.bot.client import Clock
    from ddpfix.bot.forge import Forge, Repository

SERVERS = {"github": "https://github.com", "gitlab": "https://gitlab.com", "gitea": "https://gitea.com"}
_PATHS = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
PUBLIC = {"https://github.com": "https://api.github.com"}  # its interface has a host of its own
OPT_OUT = "no-ddpfix"
Tell = Callable[[Taken, Result], None]


@dataclass(frozen=True, slots=True)
class Place:
    """kind: a key of `SERVERS`. server: where its repositories lie. api_url: of its interface."""

    kind: str
    server: str
    api_url: str


def place(kind: str, server: str = "", api_url: str = "") -> Place:
    """A forge by what is said of it; the rest follows. Raises ValueError for a kind that nobody knows."""
    if kind not in SERVERS:
        raise ValueError(f"there is no forge {kind!r}: give {', '.join(SERVERS)}")
    base = (server or SERVERS[kind]).rstrip("/")
    return Place(kind, base, api_url or PUBLIC.get(base, base + _PATHS[kind]))


def reader(at: Place, clock: Clock) -> Forge | None:
    """The forge for reading; None where the environment holds no token for its host."""
    from ddpfix.bot.connect import forge_of, refuse_cleartext
    from ddpfix.bot.login import FixedToken

    token = read_token(urlsplit(at.server).hostname or "")
    if not token:
        return None
    refuse_cleartext(at.api_url)
    return forge_of(at.kind, FixedToken(token), at.api_url, clock)


def listed(repositories: Iterable[Repository], server: str, *, forks: bool) -> tuple[list[Target], dict[str, int]]:
    """The repositories that a campaign may ask, and how many were left out, by why."""
    wanted: list[Target] = []
    left: dict[str, int] = {}
    for found in repositories:
        if why := _why_not(found, forks=forks):
            left[why] = left.get(why, 0) + 1
        else:
            wanted.append(Target(found.slug, f"{server}/{found.slug}.git"))
    return wanted, left


def _why_not(repository: Repository, *, forks: bool) -> str:
    if repository.archived:
        return "archived"
    if repository.fork and not forks:
        return "forks"
    return f"with the topic {OPT_OUT}" if OPT_OUT in repository.topics else ""


def settle_unchanged(ledger: Ledger, forge: Forge, server: str, rules: str, tell: Tell) -> int:
    """Take what waits and stands as it stood, under the same rules, as done: a hundred repositories a request, and no clone.

    How many. Raises ForgeError.
    """
    there = [taken for taken in ledger.waiting() if taken.url == f"{server}/{taken.name}.git"]
    known = [taken for taken in there if taken.head and taken.rules == rules]
    heads = forge.heads([taken.name for taken in known])
    same = [taken for taken in known if heads.get(taken.name) == taken.head]
    result = Result(rules=rules, unchanged=True)
    ledger.record([(taken.number, result) for taken in same])
    for taken in same:
        tell(taken, result)
    return len(same)
