"""What is to be done about one topic: a pure function of what stands on the forge and what this run has made.

It can be asked again at any point, after a crash or a lost answer, and says what is still missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ddpfix.bot.forge import Pull
from ddpfix.bot.marks import Marks
from ddpfix.git import RemoteCommit

# who commits what a program changes through GitHub's interface, and what a person changes on its pages
GITHUB_ITSELF = "noreply@github.com"

Action = Literal[
    "nothing", "unchanged", "create", "update", "left-to-human", "closed-by-human", "close-empty", "delete-branch", "deferred"
]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the bot as it stands on the forge. commits: newest first, down to the first that nobody knows of."""

    tip: str
    commits: tuple[RemoteCommit, ...]

    def own(self, ignored: Sequence[str] = ()) -> tuple[RemoteCommit, ...]:
        """The commits on top that are the bot's, or of an author who is not counted; at least one must be the bot's."""
        out: list[RemoteCommit] = []
        for commit in self.commits:
            if not (commit.ours or commit.updates or _ignored(commit, ignored)):
                break
            out.append(commit)
        return tuple(out) if any(c.ours for c in out) else ()

    def foreign(self, ignored: Sequence[str] = ()) -> RemoteCommit | None:
        """The commit of somebody else that keeps the bot off, None where all is its own work.

        Below the bot's commits is the commit they were made on, so what is on top decides: whoever amends, rebases or
        merges becomes the committer of what he made. A merge of the base that the forge made ("Update branch") is nobody's.
        """
        if self.own(ignored):
            return None
        return next((c for c in self.commits if not (c.updates or _ignored(c, ignored))), self.commits[0])

    @property
    def run(self) -> str:
        """The run that made the newest commit of the bot."""
        return next((c.run for c in self.commits if c.ours), "")

    def was_cut(self, left: Marks) -> bool:
        """Whether somebody took commits off the top since the bot wrote `left`: what one run made is never pushed in part."""
        return bool(left.run) and left.run == self.run and left.head not in {c.sha for c in self.commits}

    def holds(self, tree: str, base: str) -> bool:
        """Whether it has these files already, on top of that commit."""
        own = self.own()
        return bool(own) and own[0].tree == tree and any(base in c.parents for c in own)


def is_from_forge(commit: RemoteCommit) -> bool:
    """Whether the forge itself committed it, on github.com or on a server of one's own."""
    return commit.committer.lower().startswith("noreply@")


def _ignored(commit: RemoteCommit, authors: Sequence[str]) -> bool:
    """Whether a program that does not count made it; a person who amends its commit becomes the committer."""
    known = {author.lower() for author in authors}
    return commit.author.lower() in known and commit.committer.lower() in {*known, GITHUB_ITSELF}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a topic should look like. tree, commit: None where there is nothing to fix. text: the summary for the body.

    run: that made the commit.
    """

    topic: str
    branch: str
    base_branch: str
    base: str
    draft: bool
    tree: str | None = None
    commit: str | None = None
    title: str = ""
    text: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What stands on the forge for a topic: its branch, its pull requests (newest first), how many others of ours are open.

    left: the marks that are believed, by the number of their pull request.
    """

    branch: Branch | None
    pulls: tuple[Pull, ...]
    others_open: int = 0
    left: Mapping[int, Marks] = field(default_factory=dict)

    def left_in(self, pull: Pull | None) -> Marks | None:
        return self.left.get(pull.number) if pull else None

    @property
    def open(self) -> Pull | None:
        return next((p for p in self.pulls if p.state == "open"), None)


@dataclass(frozen=True, slots=True)
class Policy:
    """rebuild: throw away what others did to the branch, and forget that somebody closed it."""

    rebuild: bool = False
    max_open: int = 2
    ignored_authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """action: what is to be done. pull: about which pull request. push: whether the branch has to move. why: for people."""

    action: Action
    pull: Pull | None = None
    push: bool = False
    why: str = ""


def decide(wanted: Wanted, seen: Seen, policy: Policy) -> Decision:
    """The one thing to do now."""
    pull, branch = seen.open, seen.branch
    foreign = branch.foreign(policy.ignored_authors) if branch and not policy.rebuild else None
    if branch and foreign:
        by = f"{foreign.sha[:10]} by {foreign.author}"
        return Decision("left-to-human", pull, why=f"the branch holds {by}, which is not from ddpfix")
    if pull and not policy.rebuild and (moved := _taken_over(wanted, seen, pull)):
        return Decision("left-to-human", pull, why=moved)
    if wanted.tree is None:
        return _without_work(seen)
    if pull is None and (said := _said_no(seen)) and not policy.rebuild:
        why = "closed by a person, which means it is not wanted: comment `/ddpfix rebuild` there, or run with --reopen"
        return Decision("closed-by-human", said, why=why)
    same = branch is not None and branch.holds(wanted.tree, wanted.base)
    if pull is not None:
        return Decision("unchanged" if same else "update", pull, push=not same)
    if seen.others_open >= policy.max_open:
        return Decision("deferred", why=f"{seen.others_open} pull requests of ddpfix are open already")
    return Decision("create", push=not same)


def _taken_over(wanted: Wanted, seen: Seen, pull: Pull) -> str:
    """How somebody made an open pull request his own without a commit, "" where nobody did."""
    left, branch = seen.left_in(pull), seen.branch
    if left is None:
        return "its text bears no mark of this ddpfix (--reopen takes it over)"
    if pull.base != wanted.base_branch:
        return f"it goes to the branch {pull.base} now, and not to {wanted.base_branch}"
    if branch is None:
        return "its branch was deleted"
    return "commits were taken off its branch" if branch.was_cut(left) else ""


def _without_work(seen: Seen) -> Decision:
    if seen.open:
        return Decision("close-empty", seen.open, push=seen.branch is not None, why="there is nothing left to fix")
    # what is left of a merged or closed one is the bot's to tidy, unless somebody may still want to look at it
    if seen.branch and not _said_no(seen):
        return Decision("delete-branch", push=True, why="there is nothing left to fix")
    return Decision("nothing", why="nothing to fix")


def _said_no(seen: Seen) -> Pull | None:
    """The last pull request, if a person closed it unmerged."""
    last = seen.pulls[0] if seen.pulls else None
    if last is None or last.state != "closed":
        return None
    marked = seen.left_in(last)
    return None if marked and marked.closed else last
