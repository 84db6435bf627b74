"""What is asked about many pull requests where a forge takes one question at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Fate, Forge

GONE = (404, 410, 451)  # what a forge answers for a repository that was deleted, or that the token no longer sees


def fates(forge: Forge, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
    """As `Forge.fates`, with a request for each."""
    return {(slug, number): _fate(forge, slug, number) for slug, number in pulls}


def _fate(forge: Forge, slug: str, number: int) -> Fate | None:
    try:
        pull = forge.pull(slug, number)
    except ForgeError as error:
        if error.status not in GONE:
            raise
        return None
    return Fate(pull.state, pull.opened, pull.decided)
