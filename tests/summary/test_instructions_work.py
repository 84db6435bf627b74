"""The commands that the summary gives do what it says, in a real repository."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from ddpfix import catalog
from ddpfix import git as dgit
from ddpfix.summary import SUMMARY_COMMIT, Context, closing_screen, commit_message, render
from tests.gitrepos import blob, make, own_settings, sh
from tests.summary.made import MODEL, context, fenced, fold, in_memory

SUMMARY = "DDPFIX_SUMMARY.md"


@pytest.fixture
def repo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    own_settings(monkeypatch, tmp_path / "home")
    return make(tmp_path, {"model.py": MODEL.encode(), "README.md": b"hi\n"})


def applied(repo: Path) -> tuple[Context, str]:
    """The branch with its summary, checked out."""
    fixed = in_memory({"model.py": (repo / "model.py").read_bytes()})
    now = dgit.snapshot(repo)
    given = context(base=now.base, home="main", switched=True)
    text = render(fixed, given)
    steps = [
        dgit.Step(commit_message(catalog.lookup("DDP101"), fixed.fixed), fixed.after),
        dgit.Step(SUMMARY_COMMIT, {SUMMARY: text.encode()}),
    ]
    dgit.commit_steps(now, steps, branch="ddpfix/fixes", run_id="run1")
    dgit.switch_to(repo, "ddpfix/fixes", run_id="run1")
    assert "git merge ddpfix/fixes~1" in closing_screen(fixed, given)
    return given, fold(text, "Undo")


def run(repo: Path, block: str) -> None:
    for line in block.split(" && "):
        subprocess.run(shlex.split(line), cwd=repo, check=True, capture_output=True)


def test_merging_without_the_summary(repo: Path) -> None:
    _, part = applied(repo)
    run(repo, fenced(part, "sh")[0].splitlines()[-1])
    assert sh(repo, "branch", "--show-current") == "main"
    assert b"sync_dist=True" in blob(repo, "HEAD:model.py")
    assert sh(repo, "ls-tree", "--name-only", "HEAD").split() == ["README.md", "model.py"]
    assert sh(repo, "log", "--format=%s", "-1") == "Reduce epoch metrics over the ranks in model.py (DDP101)"


def test_going_back_for_a_run_without_one_codemod(repo: Path) -> None:
    _, part = applied(repo)
    switch, again = next(row for row in fenced(part, "sh")[0].splitlines() if "--ignore" in row).split(" && ")
    run(repo, switch)
    assert sh(repo, "branch", "--show-current") == "main"
    assert again == "ddpfix apply . --ignore DDP101 --branch ddpfix/fixes-without-ddp101"
    sh(repo, "check-ref-format", "--branch", again.split()[-1])
