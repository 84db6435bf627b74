"""One issue in a repository that says what is open, what was closed and what could not be done, with boxes to tick.

Only those who may push can change the text of an issue that the bot opened, so a box that is ticked is a command by one of them.
Each box has a signed mark of its own: what a name or a message holds is never read as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddpfix.bot.body import LIMIT, fit, harmless
from ddpfix.bot.forge import Issue, Pull
from ddpfix.bot.notes import plain
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.place import Place
from ddpfix.summary.markdown import code, prose

TITLE = "What ddpfix does here"
KIND, BOX = "dashboard", "box"
INTRODUCTION = (
    "ddpfix keeps this up to date. Tick a box and save to ask for what it says; ddpfix clears the box when that is done. "
    "To make afresh throws away what others committed to the branch. Closing this issue makes ddpfix open a new one: "
    "`dashboard = false` in `.github/ddpfix.toml` ends it."
)
UNDONE = ("failed", "refused", "deferred")


@dataclass(frozen=True, slots=True)
class Board:
    """The issue as it stands on the forge, None where there is none yet. asked: the topics whose box is ticked."""

    issue: Issue | None
    asked: frozenset[str] = frozenset()


def read(place: Place) -> Board:
    """Raises ForgeError."""
    found = [issue for issue in place.forge.issues(place.slug) if place.seal.holds(issue.author, issue.body, KIND, KIND)]
    if not found:
        return Board(None)
    issue = min(found, key=lambda one: one.number)
    return Board(issue, frozenset(place.seal.ticked(issue.body, BOX, KIND)))


def write(place: Place, board: Board, topics: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome | None:
    """Bring the issue up to date; None where nothing had to be written. Without anything to say none is opened.

    Raises ForgeError.
    """
    sections = list(_sections(place, topics, outcomes))
    if board.issue is None and not sections:
        return None
    said = "\n\n".join([INTRODUCTION, *(sections or ["There is nothing to do."])])
    body = f"{fit(said, LIMIT)}\n\n{place.seal.block(KIND, KIND)}"
    if board.issue is None:
        made = place.forge.open_issue(place.slug, TITLE, body)
        return Outcome(place.slug, KIND, "created", "", made.number, made.url)
    if plain(board.issue.body) == plain(body):
        return None
    place.forge.edit_issue(place.slug, board.issue.number, body)
    return Outcome(place.slug, KIND, "updated", "", board.issue.number, board.issue.url)


def _sections(place: Place, topics: Sequence[str], outcomes: Sequence[Outcome]) -> Iterable[str]:
    opened, closed = [], []
    for topic in topics:
        pulls = place.pulls.get(place.branch_of(topic), ())
        if one := next((pull for pull in pulls if pull.state == "open"), None):
            opened.append(_row(place, topic, _about("make afresh", topic, one)))
        elif pulls and pulls[0].state == "closed" and not _by_us(place, pulls[0]):
            closed.append(_row(place, topic, _about("bring back", topic, pulls[0])))
    left = [o for o in outcomes if o.action in UNDONE and o.topic]
    undone = [_row(place, o.topic, f"try again: {code(o.topic)}: {prose(f'{o.action}: {o.why}')}") for o in left]
    for title, rows in (("Open", opened), ("Closed unmerged", closed), ("Not done", undone)):
        if rows:
            yield "\n".join([f"### {title}", "", *rows])


def _about(what: str, topic: str, pull: Pull) -> str:
    return f"{what}: {code(topic)}: {pull.url}"


def _row(place: Place, topic: str, text: str) -> str:
    """A box and its mark, which stands behind all that could be somebody's words."""
    return f"{harmless(f'- [ ] {text}')} {place.seal.block(BOX, KIND, topic=topic)}"


def _by_us(place: Place, pull: Pull) -> bool:
    marked = place.seal.left(pull)
    return bool(marked and marked.closed)
