"""Commits that the forge itself makes, and signs where it signs those of its own pages: for rules that ask for verified commits.

The forge appends to a branch, so the commits are made on one beside, and the branch of the topic is then pushed to their tip
with a lease as ever. What the forge made is held against what was wanted before anything points to it.
"""

from __future__ import annotations

from dataclasses import replace

from ddpfix import git
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import FileChange
from ddpfix.bot.place import Place
from ddpfix.bot.planning import Wanted


class Unsigned(Exception):
    """Why the forge's own commits cannot take the place of ours."""


def signed(place: Place, wanted: Wanted) -> Wanted:
    """The same topic with commits that the forge made. Raises Unsigned, ForgeError, GitRefusal."""
    assert wanted.commit
    beside = f"{place.prefix}-signing/{wanted.topic}"
    stood = git.tips(place.forge.access(place.slug), [beside]).get(beside)  # left by a run that was cut off
    begun = place.clone.push(beside, wanted.base, stood)
    if not begun.done:
        raise Unsigned(f"the server refused the branch {beside}: {begun.why}")
    tip = wanted.base
    try:
        for made in place.clone.made(wanted.base, wanted.commit):
            tip = place.forge.commit(place.slug, beside, tip, made.message, _changes(place, made))
        _check(place, wanted, beside, tip)
    finally:
        place.clone.delete(beside, tip)
    return replace(wanted, commit=tip)


def _changes(place: Place, made: git.MadeCommit) -> list[FileChange]:
    data = place.clone.blobs((new for _, _, new in made.files if new), largest=git.LARGEST_CHANGE)
    out = []
    for path, old, new in made.files:
        if not path.isprintable() or (new and data[new] is None):
            raise Unsigned(f"the forge's interface does not take {path!r}")
        out.append(FileChange(path, data[new] if new else None, old))
    return out


def _check(place: Place, wanted: Wanted, beside: str, tip: str) -> None:
    """Raises Unsigned where the forge made something else: other files, such as without the right to run, or another author."""
    commits = place.clone.commits(beside, place.identity[1])
    if not commits or commits[0].sha != tip:
        raise ForgeError(f"the branch {beside}", 409, "somebody else moved it")
    if commits[0].tree != wanted.tree:
        raise Unsigned("the forge made other files than those that were sent, such as one that may no longer be run")
    if not commits[0].ours:
        raise Unsigned(f"the forge made the commits by {commits[0].author}: give that address with --author")
