"""What is read from a repository before anything is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, Step
from tests.git.runs import BRANCH
from tests.gitrepos import make, put, sh


def test_root_is_found_from_anywhere_inside_and_none_outside(tmp_path: Path) -> None:
    repo = make(tmp_path)
    (tmp_path / "plain").mkdir()
    assert dgit.find_root(repo) == dgit.find_root(repo / "pkg") == dgit.find_root(repo / "pkg/b.py") == repo
    assert dgit.find_root(repo / "pkg/not/there.py") == repo
    assert dgit.find_root(tmp_path / "plain") is None


def test_root_outside_git_does_not_load_gitpython(tmp_path: Path) -> None:
    code = "import sys, pathlib, ddpfix.git as g; print(g.find_root(pathlib.Path(sys.argv[1])), 'git' in sys.modules)"
    home = Path(dgit.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=home, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "None False"


def test_root_of_a_bare_repository_and_of_git_s_own_folder_are_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    with pytest.raises(GitRefusal, match="is a bare repository"):
        dgit.find_root(tmp_path / "bare.git")
    with pytest.raises(GitRefusal, match="git's own folder"):
        dgit.find_root(repo / ".git")


def test_snapshot_tells_base_branch_and_uncommitted_files(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"x = 1\nmine\n", "pkg/b.py": b"staged\n", "new.py": b"untracked\n"})
    sh(repo, "add", "pkg/b.py")
    sh(repo, "rm", "-q", "--cached", "README.md")
    now = dgit.snapshot(repo)
    assert (now.base, now.head_ref, now.operation) == (sh(repo, "rev-parse", "main"), "refs/heads/main", None)
    assert now.dirty == {"a.py": " M", "pkg/b.py": "M ", "README.md": "D "}
    assert (now.sparse, now.shallow, now.bare) == (False, False, False)
    assert dgit.read_blobs(repo, [now.committed["a.py"].sha]) == {now.committed["a.py"].sha: b"x = 1\n"}


def test_blobs_of_every_kind_come_back_byte_for_byte(tmp_path: Path) -> None:
    files = {"empty": b"", "nul": b"a\0b\n\n", "big": b"0123456789\n" * 200_000, "latin": b"\xe9\r\n"}
    repo = make(tmp_path, files)
    now = dgit.snapshot(repo)
    found = dgit.read_blobs(repo, [entry.sha for entry in now.committed.values()])
    assert {path: found[entry.sha] for path, entry in now.committed.items()} == files
    with pytest.raises(GitRefusal, match="cannot be read"):
        dgit.read_blobs(repo, ["0" * 40])


def test_no_repository_and_no_commit_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(GitRefusal, match="is not a git repository") as refused:
        dgit.snapshot(tmp_path)
    assert "git init" in refused.value.todo
    sh(tmp_path, "init", "-q")
    with pytest.raises(GitRefusal, match="no commit yet") as refused:
        dgit.snapshot(tmp_path)
    assert refused.value.todo == "commit something first"


def test_a_path_outside_the_repository_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    assert dgit.relative_path(repo, repo / "pkg" / "b.py") == "pkg/b.py"
    assert dgit.relative_path(repo, repo) == "."
    with pytest.raises(GitRefusal, match="outside the repository"):
        dgit.relative_path(repo, tmp_path / "x.py")
    for path in ("../x.py", "/etc/x.py", ".git/hooks/pre-commit", "pkg/../../x.py", "", "a//b"):
        with pytest.raises(GitRefusal, match="not a path inside"):
            dgit.commit_steps(dgit.snapshot(repo), [Step("x", {path: b""})], branch=BRANCH, run_id="r")
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_a_refusal_is_three_plain_lines() -> None:
    refusal = GitRefusal("a\nb", "c", "d")
    assert (refusal.what, refusal.why, refusal.todo, str(refusal)) == ("a b", "c", "d", "a b: c; d")
