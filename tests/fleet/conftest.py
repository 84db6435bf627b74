"""Local repositories of every kind that a campaign meets, and the command as the process that it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bot.githost import git
from tests.bot.test_strangers import tree_of_a_billion_paths
from tests.gitrepos import own_settings, sh
from tests.programs import forked_python

MODULE = """\
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    print("ready")


main()
"""


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("DDPFIX_STATE", str(tmp_path / "state"))


@dataclass(frozen=True)
class Fleet:
    """A folder with repositories, their list and the ledger."""

    folder: Path

    def add(self, name: str, files: dict[str, str] | None = None) -> Path:
        repo = self.folder / name
        repo.mkdir()
        sh(repo, "init", "-q", "-b", "main")
        for path, text in (files or {}).items():
            (repo / path).write_text(text)
        if files:
            sh(repo, "add", "-A")
            sh(repo, "commit", "-qm", "by hand")
        return repo

    def add_hostile(self) -> dict[str, str]:
        """One of each kind that ends badly: its name -> the cause that has to be told."""
        broken = self.add("corrupt", {"train.py": MODULE})
        for pack in (broken / ".git/objects").glob("??/*"):
            pack.chmod(0o644)
            pack.write_bytes(b"no object")
        bomb = self.add("bomb", {"train.py": MODULE})
        tree = tree_of_a_billion_paths(bomb / ".git")
        git(bomb / ".git", "update-ref", "refs/heads/main", git(bomb / ".git", "commit-tree", tree, "-m", "a lot"))
        self.add("settings", {"ddpfix.toml": "selct = 1\n", "train.py": MODULE})
        (self.folder / "nothing").mkdir()
        return {"corrupt": "git", "bomb": "size", "settings": "settings", "nothing": "git", "missing": "git"}

    def plan(self, *names: str, options: tuple[str, ...] = ()) -> None:
        (self.folder / "repos.txt").write_text("".join(f"./{name}\n" for name in names))
        done = self("plan", "repos.txt", *options)
        assert done.returncode == 0, done.stderr

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-m", "ddpfix.cli", "fleet", *arguments]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [forked_python(os.environ), *self.command(*arguments)[1:]]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--output-format", "json").stdout)
        return found

    def causes(self) -> dict[str, str]:
        return {Path(row["name"]).name: row["cause"] for row in self.status()["failed"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)
