"""The passing copy: the project as it stands, and nothing of the user's touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.git import GitRefusal, passing_copy, write_files
from tests.gitrepos import everything, make, own_settings, put, sh


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_settings(monkeypatch, tmp_path)
    repo = make(tmp_path, {"a.py": b"x = 1\n", "b.py": b"y = 1\n", "pkg/c.py": b"z = 1\n", ".gitignore": b"data/\n"})
    put(repo, {"a.py": b"x = 2\n", "pkg/new.py": b"n = 1\n", "data/big.bin": b"0", "staged.py": b"s = 1\n"})
    sh(repo, "add", "staged.py")
    (repo / "b.py").unlink()
    return repo


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".git"}


def test_a_copy_holds_the_uncommitted_work_and_the_checkout_stays_as_it_is(repo: Path) -> None:
    before, reflog, trees = everything(repo), sh(repo, "reflog"), sh(repo, "worktree", "list")
    with passing_copy(repo, is_git=True) as folder:
        assert files(folder) == {
            "a.py": b"x = 2\n", "pkg/c.py": b"z = 1\n", "pkg/new.py": b"n = 1\n", "staged.py": b"s = 1\n",
            ".gitignore": b"data/\n",
        }  # fmt: skip
        assert not folder.is_relative_to(repo)
        write_files(folder, {"a.py": b"x = 3\n"})
        assert (repo / "a.py").read_bytes() == b"x = 2\n"
    assert not folder.exists()
    assert everything(repo) == before
    assert sh(repo, "reflog") == reflog
    assert sh(repo, "worktree", "list") == trees
    assert not (repo / ".git/worktrees").exists()


def test_nothing_is_left_after_an_interruption(repo: Path) -> None:
    before = everything(repo)
    seen = []

    def interrupted() -> None:
        with passing_copy(repo, is_git=True) as folder:
            seen.append(folder)
            (folder / "out.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert everything(repo) == before


def test_hooks_are_not_run(repo: Path) -> None:
    hook = repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repo}/ran\n")
    hook.chmod(0o755)
    with passing_copy(repo, is_git=True):
        pass
    assert not (repo / "ran").exists()


def test_what_git_ignores_can_be_linked_to(repo: Path) -> None:
    with passing_copy(repo, is_git=True, links=["data"]) as folder:
        assert (folder / "data/big.bin").read_bytes() == b"0"
        with pytest.raises(GitRefusal, match="a link leads out of the copy"):
            write_files(folder, {"data/big.bin": b"1"})
    assert (repo / "data/big.bin").read_bytes() == b"0"
    with pytest.raises(GitRefusal, match="it is not there"), passing_copy(repo, is_git=True, links=["nowhere"]):
        pass


def test_outside_git_it_is_a_copy(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    put(project, {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n"})
    with passing_copy(project, is_git=False) as folder:
        assert files(folder) == {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n"}
        write_files(folder, {"a.py": b"x = 2\n"})
    assert (project / "a.py").read_bytes() == b"x = 1\n"
    assert not folder.exists()
