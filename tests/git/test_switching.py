"""The switch to the branch, and the way back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal
from tests.git.runs import BRANCH, SUMMARY, go
from tests.gitrepos import blob, everything, make, put, sh, start_merge, visible


def test_merge_in_progress_allows_the_branch_and_refuses_the_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    start_merge(repo)
    before = everything(repo)
    assert dgit.snapshot(repo).operation == "merge"
    go(repo)
    with pytest.raises(GitRefusal, match="a merge is in progress") as refused:
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert refused.value.todo == "git merge --continue or git merge --abort, or --no-switch"
    assert everything(repo) == before
    dgit.undo(repo)
    assert everything(repo) == before


@pytest.mark.parametrize("kind", ["rebase", "rebase --apply", "cherry-pick", "revert", "bisect"])
def test_other_operations_in_progress(tmp_path: Path, kind: str) -> None:
    repo = make(tmp_path)
    start_merge(repo)
    sh(repo, "merge", "--abort")
    if kind == "bisect":
        sh(repo, "bisect", "start", "main", "main~1")
    elif kind == "revert":
        put(repo, {"README.md": b"third\n"})
        sh(repo, "commit", "-qam", "third")
        sh(repo, "revert", "--no-edit", "HEAD~1", ok=False)
    else:
        sh(repo, *kind.split(), "other", ok=False)
    before = everything(repo)
    name = kind.split()[0]
    assert dgit.snapshot(repo).operation == name
    go(repo)
    with pytest.raises(GitRefusal, match=f"a {name} is in progress") as refused:
        dgit.check_switch(dgit.snapshot(repo), [])
    assert f"git {name}" in refused.value.todo
    assert everything(repo) == before


def test_the_switch_carries_unrelated_work_along_and_undo_brings_all_back(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"my edit\n", "new.py": b"untracked\n", "staged.py": b"staged\n"})
    sh(repo, "add", "staged.py")
    before = visible(repo)
    go(repo)
    dgit.check_switch(dgit.snapshot(repo), ["a.py", "pkg/b.py", SUMMARY])
    assert dgit.switch_to(repo, BRANCH, run_id="run1") == "refs/ddpfix/backup/run1"
    assert (repo / "a.py").read_bytes() == b"x = 2\n"
    assert (repo / "README.md").read_bytes() == b"my edit\n"
    assert blob(repo, "refs/ddpfix/backup/run1:README.md") == b"my edit\n"
    assert sh(repo, "status", "--porcelain").splitlines() == [" M README.md", "A  staged.py", "?? new.py"]
    undone = dgit.undo(repo)
    assert (undone.branch, undone.back_to, undone.merged) == (BRANCH, "main", False)
    assert visible(repo) == before


def test_no_backup_where_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    assert dgit.switch_to(repo, BRANCH, run_id="run1") is None
    assert dgit.switch_to(repo, BRANCH, run_id="run1") is None


def test_a_file_that_was_only_touched_is_no_change(tmp_path: Path) -> None:
    repo = make(tmp_path)
    os.utime(repo / "pkg" / "b.py", (1_000_000_000, 1_000_000_000))
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert sh(repo, "symbolic-ref", "--short", "HEAD") == BRANCH
    assert sh(repo, "for-each-ref", "refs/ddpfix/backup") == ""


def test_a_file_announced_with_add_n_comes_along_and_is_backed_up(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"new.py": b"announced\n", "README.md": b"mine\n"})
    sh(repo, "add", "-N", "new.py")
    before = visible(repo)
    go(repo)
    assert dgit.switch_to(repo, BRANCH, run_id="run1") == "refs/ddpfix/backup/run1"
    assert (repo / "new.py").read_bytes() == blob(repo, "refs/ddpfix/backup/run1:new.py") == b"announced\n"
    assert sh(repo, "status", "--porcelain").splitlines() == [" M README.md", " A new.py"]
    dgit.undo(repo)
    assert visible(repo) == before


def test_dirty_files_that_a_fix_would_touch_are_named_and_nothing_moves(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"x = 1\nmine\n", "pkg/b.py": b"staged\n"})
    sh(repo, "add", "pkg/b.py")
    with pytest.raises(GitRefusal, match=r"a\.py, pkg/b\.py") as refused:
        dgit.check_switch(dgit.snapshot(repo), ["a.py", "pkg/b.py", SUMMARY])
    assert "--include-dirty" in refused.value.todo
    assert "--no-switch" in refused.value.todo
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=r"work in a\.py, pkg/b\.py would be overwritten"):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before
    assert sh(repo, "for-each-ref", "refs/ddpfix") == ""


@pytest.mark.parametrize("ignored", [True, False])
def test_a_precious_file_in_the_way_is_kept(tmp_path: Path, ignored: bool) -> None:
    repo = make(tmp_path, {"a.py": b"x = 1\n", ".gitignore": b"*.md\n" if ignored else b""})
    put(repo, {SUMMARY: b"precious\n"})
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=SUMMARY):
        dgit.check_switch(dgit.snapshot(repo), ["a.py", SUMMARY])
    with pytest.raises(GitRefusal, match=SUMMARY):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before


def test_conflicts_without_a_merge_refuse_the_switch(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"README.md": b"stashed\n"})
    sh(repo, "stash")
    put(repo, {"README.md": b"committed\n"})
    sh(repo, "commit", "-qam", "second")
    sh(repo, "stash", "pop", ok=False)
    go(repo)
    before = everything(repo)
    with pytest.raises(GitRefusal, match=r"unresolved conflicts: README\.md; "):
        dgit.switch_to(repo, BRANCH, run_id="run1")
    assert everything(repo) == before


def test_undo_off_the_branch_does_not_move_head(tmp_path: Path) -> None:
    repo = make(tmp_path)
    put(repo, {"a.py": b"mine\n"})
    before = everything(repo)
    go(repo)
    undone = dgit.undo(repo)
    assert (undone.back_to, undone.restored, undone.already_gone) == (None, None, False)
    assert everything(repo) == before
    assert sh(repo, "branch", "--list", "ddpfix/*") == ""


def test_undo_after_a_detached_head(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "checkout", "-q", "--detach")
    before = visible(repo)
    assert dgit.snapshot(repo).head_ref is None
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    assert dgit.undo(repo).back_to == sh(repo, "rev-parse", "main")
    assert visible(repo) == before


def test_undo_when_the_old_branch_is_gone_goes_back_to_its_commit(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "switch", "-qc", "feature")
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    sh(repo, "branch", "-qD", "feature")
    assert dgit.undo(repo).back_to == sh(repo, "rev-parse", "main") == sh(repo, "rev-parse", "HEAD")


def test_undo_refuses_a_branch_that_has_moved_on(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    put(repo, {"a.py": b"by hand\n"})
    sh(repo, "commit", "-qam", "By hand")
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=r"moved on to \w+ \(By hand, by Ada\)"):
        dgit.undo(repo)
    assert everything(repo, ours=("none",)) == before


def test_undo_refuses_where_work_would_be_lost(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    put(repo, {"a.py": b"x = 2\nmine\n"})
    before = everything(repo, ours=("ddpfix/run1",))
    with pytest.raises(GitRefusal, match=r"work in a\.py would be overwritten"):
        dgit.undo(repo)
    assert everything(repo, ours=("ddpfix/run1",)) == before


def test_undo_of_a_deleted_and_of_a_merged_branch_says_so(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    sh(repo, "merge", "-q", BRANCH)
    assert dgit.undo(repo).merged
    sh(repo, "reset", "-q", "--hard", "HEAD~2")
    go(repo, "run2")
    sh(repo, "branch", "-D", BRANCH)
    assert dgit.undo(repo).already_gone
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo(repo)


def test_undo_of_a_named_run_and_of_an_unknown_one(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo, "run1", branch="one")
    go(repo, "run2", branch="two")
    with pytest.raises(GitRefusal, match="no run run9"):
        dgit.undo(repo, "run9")
    assert dgit.undo(repo, "run1").branch == "one"
    assert dgit.undo(repo).branch == "two"


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "-x", "a b", "x" * 200])
def test_a_run_id_is_a_plain_word(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(GitRefusal, match="is not a run id"):
        go(make(tmp_path), run_id)


def test_an_interrupt_waits_for_the_switch_to_end() -> None:
    import signal
    import subprocess

    from ddpfix.git.switching import uninterrupted

    reached = []

    def switch() -> None:
        with uninterrupted():
            child = subprocess.run(["sh", "-c", "kill -INT $$; echo finished"], capture_output=True, check=False)
            signal.raise_signal(signal.SIGINT)
            reached.append(child.stdout)

    with pytest.raises(KeyboardInterrupt):
        switch()
    assert reached == [b"finished\n"]
