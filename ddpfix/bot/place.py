"""A repository while the bot works on it, and what stands on the forge for one of its branches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ddpfix import git
from ddpfix.bot import fixes
from ddpfix.bot.budget import Budget
from ddpfix.bot.forge import Forge, Pull, Repository
from ddpfix.bot.marks import Seal
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.planning import Branch, Seen, is_from_forge


@dataclass
class Place:
    """A repository while the bot works on it. branches: those of the bot when it began. pulls: of each, as read last.

    wanted: the branches of the topics that are asked for; what is open beside them is about to be superseded.
    """

    forge: Forge
    repository: Repository
    clone: git.Clone
    project: fixes.Project
    identity: tuple[str, str]
    budget: Budget
    seal: Seal
    prefix: str = "ddpfix"
    dry_run: bool = False
    labels: tuple[str, ...] = ()
    pulls: dict[str, tuple[Pull, ...]] = field(default_factory=dict)
    branches: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    cover: str = ""
    signed: bool = False

    @property
    def slug(self) -> str:
        return self.repository.slug

    def branch_of(self, topic: str) -> str:
        return f"{self.prefix}/{topic}"

    def look(self, branch: str, *, may_exist: bool = True) -> Seen:
        """may_exist: False for a branch that was not there when the run began; if it is there now, the push will say so.

        The pull requests are read first: one that is open has its branch, unless somebody deletes it.
        """
        self.pulls[branch] = tuple(self.forge.pulls(self.slug, branch))
        has_open = any(p.state == "open" for p in self.pulls[branch])
        commits = self.clone.commits(branch, self.identity[1]) if may_exist or has_open else ()
        commits = self._told_apart(commits)
        if has_open and not commits:  # closed and deleted in between?
            self.pulls[branch] = tuple(self.forge.pulls(self.slug, branch))
        others = [p for name, found in self.pulls.items() if name != branch and name in self.wanted for p in found]
        open_ones = sum(p.state == "open" and self.seal.is_own(p.author) for p in others)
        left = {pull.number: marks for pull in self.pulls[branch] if (marks := self.seal.left(pull))}
        return Seen(Branch(commits[0].sha, commits) if commits else None, self.pulls[branch], open_ones, left)

    def _told_apart(self, commits: tuple[git.RemoteCommit, ...]) -> tuple[git.RemoteCommit, ...]:
        """The commits on top of the bot's own that only bring the base in, marked as such."""
        out = list(commits)
        for at, commit in enumerate(commits):
            if commit.ours or not is_from_forge(commit) or not self.clone.is_plain_merge(commit, self.repository.default_branch):
                break
            out[at] = replace(commit, updates=True)
        return tuple(out)

    def outcome(self, topic: str, action: str, pull: Pull | None = None, why: str = "") -> Outcome:
        return Outcome(self.slug, topic, action, why, pull.number if pull else None, pull.url if pull else "")
