"""Bare, shallow, sparse, linked … : the branch is made and nothing of the user's moves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, Step
from tests.git.runs import BRANCH, SUMMARY, go
from tests.gitrepos import blob, everything, make, put, sh


def test_bare_repository_gets_the_branch_but_no_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    bare = tmp_path / "bare.git"
    go(bare)
    assert blob(bare, f"{BRANCH}:a.py") == b"x = 2\n"
    with pytest.raises(GitRefusal, match="is a bare repository"):
        dgit.switch_to(bare, BRANCH, run_id="run1")
    assert dgit.undo(bare).branch == BRANCH
    assert sh(bare, "branch", "--list", "ddpfix/*") == ""


def test_shallow_clone_can_be_fixed_and_pushed(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"second\n"})
    sh(repo, "commit", "-qam", "second")
    sh(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    clone = tmp_path / "shallow"
    assert dgit.snapshot(clone).shallow
    before = everything(clone)
    made = go(clone)
    assert everything(clone) == before
    sh(clone, "push", "-q", "origin", BRANCH)
    assert sh(repo, "rev-parse", BRANCH) == made.commits[-1][0]
    assert go(clone, "run2").kept


def test_sparse_checkout_keeps_the_files_that_are_not_laid_out(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n", "far/c.py": b"z = 1\n"})
    sh(repo, "sparse-checkout", "set", "pkg")
    assert not (repo / "far").exists()
    before = everything(repo)
    assert dgit.snapshot(repo).sparse
    go(repo)
    assert everything(repo) == before
    assert sh(repo, "ls-tree", "-r", "--name-only", BRANCH).splitlines() == [SUMMARY, "a.py", "far/c.py", "pkg/b.py"]
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / "pkg/b.py").read_bytes() == b"y = 2\n"
    assert not (repo / "far").exists()
    assert sh(repo, "status", "--porcelain") == ""


def test_objects_that_a_partial_clone_lacks_are_not_asked_for(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", "pkg/b.py": b"y = 1\n", "huge.bin": b"weights\n"})
    sha = sh(repo, "rev-parse", "HEAD:huge.bin")
    sh(repo, "update-index", "--skip-worktree", "huge.bin")
    (repo / "huge.bin").unlink()
    (repo / ".git/objects" / sha[:2] / sha[2:]).unlink()
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / "a.py").read_bytes() == b"x = 2\n"
    assert sh(repo, "rev-parse", f"{BRANCH}:huge.bin") == sha
    assert dgit.undo(repo).back_to == "main"


def test_repository_with_sha256_ids(tmp_path: Path) -> None:
    if subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path / "x"], check=False).returncode:
        pytest.skip("this git has no SHA-256 repositories")
    repo = tmp_path / "x"
    put(repo, {"a.py": b"x = 1\n"})
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "first")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert (repo / "a.py").read_bytes() == b"x = 2\n"
    dgit.undo(repo)
    assert (repo / "a.py").read_bytes() == b"x = 1\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else_is_refused_with_git_s_own_advice(tmp_path: Path) -> None:
    repo = make(tmp_path)
    for path in (repo, repo / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(GitRefusal, match="does not trust this repository") as refused:
        dgit.find_root(repo)
    assert refused.value.todo == f"git config --global --add safe.directory {repo}"


def test_sparse_index_index_v4_and_split_index(tmp_path: Path) -> None:
    for number, setting in enumerate(
        (
            ("sparse-checkout", "set", "--cone", "--sparse-index", "pkg"),
            ("update-index", "--index-version", "4"),
            ("update-index", "--split-index"),
        )
    ):
        repo = make(tmp_path, name=f"repo{number}")
        sh(repo, "config", "core.splitIndex", "true" if "--split-index" in setting else "false")
        sh(repo, *setting)
        put(repo, {"pkg/b.py": b"y = 1\nmine\n"})
        before = everything(repo)
        go(repo)
        assert everything(repo) == before, setting
        sh(repo, "restore", "pkg/b.py")
        dgit.switch_to(repo, BRANCH, run_id="run1")
        assert (repo / "pkg/b.py").read_bytes() == b"y = 2\n"


def test_linked_worktree_shares_the_branch_and_the_journal(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
    linked = tmp_path / "linked"
    assert dgit.find_root(linked) == linked
    assert dgit.journal_folder(linked) == dgit.journal_folder(repo) == repo / ".git/ddpfix"
    before = everything(repo)
    go(linked)
    assert everything(repo) == before
    dgit.switch_to(linked, BRANCH, run_id="run1")
    assert (linked / "a.py").read_bytes() == b"x = 2\n"
    with pytest.raises(GitRefusal, match=f"checked out in {linked}"):
        go(repo, "run2")
    with pytest.raises(GitRefusal, match=f"checked out in {linked}"):
        dgit.undo(repo)
    assert dgit.undo(linked).back_to == "feature"
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_submodule_and_symlink_are_told_and_left_alone(tmp_path: Path) -> None:
    sub = make(tmp_path, {"s.py": b"s = 1\n"}, name="sub")
    repo = make(tmp_path)
    sh(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(sub), "vendored")
    (repo / "link.py").symlink_to("a.py")
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "more")
    now = dgit.snapshot(repo)
    assert (now.symlinks, now.submodules) == (("link.py",), ("vendored",))
    assert not {"link.py", "vendored", "vendored/s.py"} & set(now.committed)
    for path, kind in (("link.py", "symbolic link"), ("vendored", "submodule"), ("vendored/s.py", "submodule")):
        with pytest.raises(GitRefusal, match=kind):
            dgit.commit_steps(now, [Step("x", {path: b"x"})], branch=BRANCH, run_id="run1")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert sh(repo, "ls-tree", BRANCH, "vendored", "link.py") == sh(repo, "ls-tree", "main", "vendored", "link.py")
    assert (repo / "vendored/s.py").read_bytes() == b"s = 1\n"
    assert (repo / "link.py").is_symlink()
