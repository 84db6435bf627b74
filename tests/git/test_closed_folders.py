"""`ddpfix apply` and `undo` as commands, with a folder or a file that nobody may write: all is as it was, named, exit 2."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gitrepos import make, put, sh, visible
from tests.programs import FIXED, MODULE, ddpfix

FILES = {"a.py": MODULE, "pkg/b.py": MODULE, "pkg/c.py": MODULE, "z.py": MODULE, "notes.md": b"notes\n", "pkg/own.md": b"own\n"}


class Closed:
    """A path that cannot be written until it is opened; for root by the attribute of the file system that binds him, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def close(self) -> None:
        if os.geteuid():
            self.path.chmod(0o555)
        elif subprocess.run(["chattr", "+i", self.path], capture_output=True, check=False).returncode:
            pytest.skip("root writes everywhere, and this file system has no immutable files")

    def open(self) -> None:
        if os.geteuid():
            self.path.chmod(0o755)
        elif shutil.which("chattr"):
            subprocess.run(["chattr", "-i", self.path], capture_output=True, check=False)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = make(tmp_path, FILES)
    put(made, {"notes.md": b"my notes\n", "new.txt": b"mine\n", "staged.md": b"staged\n"})
    sh(made, "add", "staged.md")
    return made


@pytest.fixture
def closed(repo: Path) -> Iterator[Closed]:
    made = Closed(repo / "pkg")
    try:
        yield made
    finally:
        made.open()


def test_apply_into_a_folder_that_cannot_be_written(repo: Path, closed: Closed) -> None:
    closed.close()
    before = visible(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2, done.stderr
    assert b"not switched to ddpfix/fixes: git could not write pkg/b.py, pkg/c.py" in done.stderr
    assert b"Every file is as it was" in done.stderr
    assert visible(repo) == before
    sh(repo, "fsck", "--no-dangling")
    undone = ddpfix(repo, "undo")
    assert (undone.returncode, visible(repo)) == (0, before), undone.stderr
    closed.open()
    assert ddpfix(repo, "apply", ".").returncode == 0
    assert (repo / "pkg/b.py").read_bytes() == FIXED


def test_undo_into_a_folder_that_cannot_be_written(repo: Path, closed: Closed) -> None:
    before = visible(repo)
    assert ddpfix(repo, "apply", ".").returncode == 0
    closed.close()
    for _ in range(2):
        done = ddpfix(repo, "undo")
        assert done.returncode == 2, done.stderr
        assert b"not all is as it was: pkg/b.py, pkg/c.py: " in done.stderr
        assert (repo / "notes.md").read_bytes() == b"my notes\n"
        assert sh(repo, "branch", "--list", "ddpfix/fixes")
    closed.open()
    done = ddpfix(repo, "undo")
    assert done.returncode == 0, done.stderr
    assert visible(repo) == before


def test_in_place_into_a_folder_that_cannot_be_written(repo: Path, closed: Closed) -> None:
    closed.close()
    before = visible(repo)
    done = ddpfix(repo, "apply", "--in-place", ".")
    assert done.returncode == 2, done.stderr
    assert b"pkg/b.py" in done.stderr
    assert visible(repo) == before


def test_apply_where_the_filter_of_a_file_fails_in_the_middle(repo: Path) -> None:
    """For everybody, root too: git stops the switch at the third file."""
    count = repo.parent / "count"
    script = repo.parent / "filter.sh"
    script.write_text(f"echo >> {count}\n[ -e {repo.parent}/armed ] && [ $(wc -l < {count}) -eq 3 ] && exit 1\nexec cat\n")
    for key, value in {"smudge": f"sh {script}", "clean": "cat", "required": "true"}.items():
        sh(repo, "config", f"filter.trap.{key}", value)
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("*.py filter=trap\n")
    (repo.parent / "armed").touch()
    before = visible(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 2, done.stderr
    assert b"filter" in done.stderr
    assert visible(repo) == before
