"""What the bot asks of a forge: a small protocol, and the plain values that go through it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ddpfix.git import Access

PullState = Literal["open", "closed", "merged"]
Receipt = Literal["seen", "done", "refused"]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as far as it matters whether the bot may work on it. slug: owner/name, on GitLab the whole path.

    id: its number on the forge, which stays when it is renamed.
    """

    slug: str
    default_branch: str
    id: str = ""
    archived: bool = False
    fork: bool = False
    may_push: bool = True
    pulls: bool = True
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request (merge request). branch: its head's; inside: of the repository itself, and not of a fork.

    opened, decided: seconds since 1970, 0 where it is open or the forge does not say.
    """

    number: int
    state: PullState
    title: str
    body: str
    draft: bool
    url: str
    author: str
    branch: str
    tip: str
    base: str
    inside: bool = True
    opened: float = 0.0
    decided: float = 0.0


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a pull request. opened, decided: seconds since 1970, 0 where it is open or the forge does not say."""

    state: PullState
    opened: float = 0.0
    decided: float = 0.0


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment. by_bot: written by a program, belongs: by somebody of the repository, as far as the forge says."""

    id: int
    body: str
    author: str
    by_bot: bool = False
    belongs: bool = True


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue of the bot's own."""

    number: int
    body: str
    author: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit makes of a file: its new bytes, None where it is gone. old: the id of what was there, "" for a new one."""

    path: str
    data: bytes | None
    old: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """New text for the lines first..last of the new side of a pull request, the words above it, the mark below."""

    path: str
    first: int
    last: int
    text: str
    words: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """The new side of one file of a pull request: the lines it changes, and those that a review can point at, by hunk."""

    changed: frozenset[int]
    hunks: tuple[range, ...]

    def in_one_hunk(self, first: int, last: int) -> bool:
        return any(first in hunk and last in hunk for hunk in self.hunks)


class Forge(Protocol):
    """GitHub, a GitHub Enterprise server, GitLab, Gitea or Forgejo. Every method raises ForgeError where the forge refuses."""

    name: str
    suggestion_limit: int

    def secrets(self) -> Sequence[str]: ...

    def account(self, slug: str) -> str:
        """The login under which the bot writes there."""

    def narrowed(self) -> Forge:
        """The same forge with a token that can read contents and write pull requests, where the login can make one."""

    def identity(self) -> tuple[str, str]:
        """The name and the address of the bot's commits."""

    def repository(self, slug: str) -> Repository: ...

    def listed(self, slug: str) -> Iterator[Repository]:
        """The repositories of an organization or a person; of a group with its sub-groups on GitLab."""

    def heads(self, slugs: Sequence[str]) -> Mapping[str, str]:
        """The tip of each default branch, "" for a repository without commits, many in one request.

        What the forge does not tell is left out: git has to be asked then.
        """

    def fates(self, pulls: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Fate | None]:
        """What became of pull requests (slug, number), many in one request; None for one that the forge no longer has."""

    def access(self, slug: str) -> Access:
        """How git gets at the repository, with a token that is good now."""

    def pulls(self, slug: str, branch: str) -> Sequence[Pull]:
        """All pull requests from this branch of the repository itself, open or not, the newest first."""

    def pull(self, slug: str, number: int) -> Pull: ...

    def pull_ref(self, number: int) -> str:
        """The ref under which the forge keeps the head of a pull request."""

    def open_pull(self, slug: str, *, branch: str, base: str, title: str, body: str, draft: bool) -> Pull: ...

    def edit_pull(
        self,
        slug: str,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        base: str | None = None,
        close: bool = False,
    ) -> None:
        """Change what is given; with `close`, close it."""

    def label(self, slug: str, number: int, labels: Sequence[str]) -> None: ...

    def comments(self, slug: str, number: int) -> Sequence[Comment]: ...

    def comment(self, slug: str, number: int, body: str) -> None: ...

    def edit_comment(self, slug: str, number: int, comment: int, body: str) -> None: ...

    def react(self, slug: str, number: int, comment: int, receipt: Receipt) -> None: ...

    def may_write(self, slug: str, login: str) -> bool:
        """Whether a person may push to the repository."""

    def rules(self, slug: str, branch: str) -> Sequence[str]:
        """The kinds of rules that bind a branch of this name."""

    def changed(self, slug: str, number: int) -> Mapping[str, ChangedFile]:
        """What a pull request changes, by path."""

    def review_comments(self, slug: str, number: int) -> Sequence[Comment]:
        """The comments that stand on lines of a pull request."""

    def review(self, slug: str, pull: Pull, body: str, suggestions: Sequence[Suggestion]) -> None:
        """Put suggestions on lines, all at once."""

    def issues(self, slug: str) -> Sequence[Issue]:
        """The open issues that the bot opened."""

    def open_issue(self, slug: str, title: str, body: str) -> Issue: ...

    def edit_issue(self, slug: str, number: int, body: str) -> None: ...

    def commit(self, slug: str, branch: str, base: str, message: str, changes: Sequence[FileChange]) -> str:
        """Let the forge itself commit on top of a branch that stands at `base`, and sign it if it does so; the new tip."""


def right_sides(diff: str) -> dict[str, ChangedFile]:
    """The new sides of a whole diff, as git writes it, by path; of files that are there afterwards."""
    out: dict[str, ChangedFile] = {}
    for part in f"\n{diff}".split("\ndiff --git ")[1:]:
        head, mark, hunks = part.partition("\n@@ ")
        name = head.rpartition("\n+++ ")[2].split("\n", 1)[0]
        if mark and name != "/dev/null":
            out[_unquoted(name.rstrip("\t")).removeprefix("b/")] = right_side(f"@@ {hunks}")
    return out


def _unquoted(name: str) -> str:
    """A file's name without git's quotes (git-config(1), core.quotePath)."""
    if not name.startswith('"'):
        return name
    return os.fsdecode(name.strip('"').encode("latin-1", "replace").decode("unicode_escape").encode("latin-1", "replace"))


def right_side(patch: str) -> ChangedFile:
    """The new side of one file's hunks, as forges give them: without the lines that name the files."""
    import re

    changed: set[int] = set()
    hunks: list[range] = []
    at = 0
    for row in patch.split("\n"):
        if head := re.match(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", row):
            at, count = int(head[1]), int(head[2] or 1)
            hunks.append(range(at, at + count))
        elif row.startswith("+"):
            changed.add(at)
            at += 1
        elif row.startswith(" "):
            at += 1
    return ChangedFile(frozenset(changed), tuple(hunks))
