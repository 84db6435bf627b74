"""One forge for all tests, a repository for each, and a clock that nobody has to wait for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ddpfix.bot.client import Pace
from ddpfix.bot.github import GitHub
from ddpfix.bot.login import FixedToken
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.repositories import Bot, BotOptions
from ddpfix.bot.state import State
from tests.bot.githost import git, import_commit
from tests.bot.github_forge import Account, Clock, GitHubForge, Repo
from tests.bot.shell import Shell
from tests.gitrepos import own_settings

TOKEN = "ghp_0123456789abcdefghijklmnop"
KEY = "the key of the marks of these tests"
STATE = State(None, KEY.encode())
IDENTITY = ("mender[bot]", "4711+mender[bot]@users.noreply.example.test")

MODULE = b"""\
import lightning.pytorch as pl
import torch.nn.functional as F


class Model(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("val/loss", loss)
"""
FIXED = MODULE.replace(b"loss)\n", b"loss, sync_dist=True)\n")
FILES = {"model.py": MODULE, "requirements.txt": b"lightning==2.5.0\n"}


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("DDPFIX_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DDPFIX_MARKS_KEY", KEY)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="session")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def forge(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[GitHubForge]:
    os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")
    host = GitHubForge(tmp_path_factory.mktemp("github"), clock)
    host.accounts[TOKEN] = Account("mender[bot]")
    yield host
    host.close()


@dataclass
class World:
    """A repository on the forge, and the bot that looks after it."""

    forge: GitHubForge
    slug: str
    clock: Clock

    @property
    def repo(self) -> Repo:
        return self.forge.repos[self.slug]

    @property
    def git(self) -> Path:
        return self.forge.repository(self.slug)

    def bot(self, *, token: str = TOKEN, **options: Any) -> Bot:
        forge = GitHub(FixedToken(token), clock=self.clock, api_url=self.forge.api, pace=Pace(gap=0.0), identity=IDENTITY)
        return Bot(forge, BotOptions(**{"confined": False, **options}), self.clock, STATE)

    def run(self, **options: Any) -> list[Outcome]:
        return self.bot(**options).repository(self.slug)

    def actions(self, **options: Any) -> dict[str, str]:
        return {o.topic: o.action for o in self.run(**options)}

    def safe(self, **options: Any) -> Outcome:
        """What comes of the safe fixes, the other topics left out for speed."""
        return self.run(**{"topics": ("safe",), **options})[0]

    def pull(self, number: int = 1) -> dict[str, Any]:
        self.forge.pull_json(self.slug, self.repo.pulls[number])
        return self.repo.pulls[number]

    def pull_url(self, number: int) -> str:
        return f"{self.forge.url}/{self.slug}/pull/{number}"

    def tip(self, branch: str = "ddpfix/safe") -> str:
        return self.forge.tip(self.slug, f"refs/heads/{branch}")

    def commit(self, files: Mapping[str, bytes], *, branch: str = "main", message: str = "by hand") -> str:
        """A person's commit on top of a branch."""
        return import_commit(self.git, branch, files, message, parent=f"refs/heads/{branch}^0")

    def file(self, path: str, branch: str = "ddpfix/safe") -> bytes:
        return git(self.git, "cat-file", "blob", f"refs/heads/{branch}:{path}").encode() + b"\n"

    def notes(self, number: int = 1) -> list[str]:
        return [c["body"] for c in self.repo.comments.values() if c["on"] == number]


@pytest.fixture
def world(forge: GitHubForge, clock: Clock, request: pytest.FixtureRequest) -> World:
    slug = f"acme/{re.sub(r'[^a-z0-9]+', '-', request.node.name.removeprefix('test_'))[:60].strip('-')}"
    forge.add(slug, FILES)
    forge.faults.clear()
    forge.before = lambda verb, path: None
    clock.slept.clear()
    return World(forge, slug, clock)
