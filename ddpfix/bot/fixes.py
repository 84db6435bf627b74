"""What the fixes of a repository are, asked of the child that works on it: outside of it nothing of a repository is parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpfix import git
from ddpfix.bot.child import Worker
from ddpfix.bot.planning import Wanted
from ddpfix.bot.preferences import Preferences
from ddpfix.bot.topics import Topic
from ddpfix.settings import Settings


@dataclass(frozen=True)
class Project:
    """A repository at one commit, as its child has read it. worker: that child. access: a way in that can only read."""

    base: str
    settings: Settings
    preferences: Preferences
    worker: Worker
    access: Callable[[], git.Access]


def look_at(worker: Worker, access: Callable[[], git.Access], branch: str) -> Project:
    """Let the child clone and read a branch. Raises GitRefusal, SettingsError."""
    base, settings, preferences = worker.ask("look", access(), branch)
    return Project(base, settings, preferences, worker, access)


def clone_of(worker: Worker, access: Callable[[], git.Access]) -> git.Clone:
    """The clone that the child has made, with a way in that may push."""
    return git.Clone(Path(worker.clone), access)


def make(
    project: Project,
    clone: git.Clone,
    topic: Topic,
    *,
    branch: str,
    base_branch: str,
    identity: tuple[str, str],
    here: Sequence[str] = (),
    repo: Sequence[str] = (),
) -> Wanted:
    """The commits of a topic, in the clone only. here, repo: codes left out, and left out by the settings from now on.

    Raises UnknownSelector, GitRefusal, SettingsError.
    """
    asked = {"branch": branch, "base_branch": base_branch, "identity": identity, "here": tuple(here), "repo": tuple(repo)}
    wanted: Wanted = project.worker.ask("make", project.access(), topic, **asked)
    return wanted
