"""Whose a branch is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ddpfix import git as dgit
from ddpfix.git import GitRefusal, Step, journal
from tests.git.runs import BRANCH, fixes, go
from tests.gitrepos import everything, make, put, sh

if TYPE_CHECKING:
    from _collections_abc import dict_items


@pytest.mark.parametrize("name", ["", "-x", "a b", "a..b", "x.lock", "HEAD", "@{-1}", "a\nb", "/x", "x/"])
def test_invalid_branch_names_are_refused(tmp_path: Path, name: str) -> None:
    repo = make(tmp_path)
    with pytest.raises(GitRefusal, match="is not a branch name"):
        go(repo, branch=name)


def test_a_branch_name_that_is_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "branch", "ddpfix")
    with pytest.raises(GitRefusal, match="cannot hold it beside the branch ddpfix;"):
        go(repo)
    sh(repo, "branch", "team/fixes/one")
    with pytest.raises(GitRefusal, match="beside the branch team/fixes/one;"):
        go(repo, branch="team/fixes")


def test_a_foreign_branch_of_the_same_name_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "branch", BRANCH)
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=r"it holds \w+ \(first, by Ada\), which is not from ddpfix") as refused:
        go(repo)
    assert "--branch" in refused.value.todo
    assert everything(repo, ours=("none",)) == before


@pytest.mark.parametrize("how", ["on top", "amended", "below", "on top, journal lost"])
def test_our_branch_with_somebody_s_commit_is_refused(tmp_path: Path, how: str) -> None:
    repo = make(tmp_path)
    go(repo)
    sh(repo, "switch", "-q", BRANCH)
    put(repo, {"README.md": b"by hand\n"})
    if how == "amended":
        sh(repo, "commit", "-qa", "--amend", "--no-edit")
    else:
        sh(repo, "commit", "-qam", "By hand")
    if how == "below":
        sh(repo, "commit", "-q", "--allow-empty", "-m", "x\n\nddpfix-run: lost")
    sh(repo, "switch", "-q", "main")
    if how.endswith("lost"):
        shutil.rmtree(repo / ".git/ddpfix")
    tip = sh(repo, "rev-parse", BRANCH)
    with pytest.raises(GitRefusal, match="which is not from ddpfix" if how != "below" else r"By hand, by Ada"):
        go(repo, "run2")
    assert sh(repo, "rev-parse", BRANCH) == tip


def test_our_branch_that_is_checked_out_is_refused(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    dgit.switch_to(repo, BRANCH, run_id="run1")
    with pytest.raises(GitRefusal, match="is checked out now") as refused:
        go(repo, "run2")
    assert "ddpfix undo" in refused.value.todo
    assert "--branch" in refused.value.todo


def test_a_second_run_with_the_same_result_keeps_the_commits(tmp_path: Path) -> None:
    repo = make(tmp_path)
    first = go(repo)
    sh(repo, "switch", "-qc", "feature")
    second = go(repo, "run2")
    assert (second.kept, second.commits, second.run_id) == (True, first.commits, "run1")
    dgit.switch_to(repo, BRANCH, run_id=second.run_id)
    assert dgit.undo(repo).back_to == "feature"


def test_a_branch_fetched_from_elsewhere_is_kept_or_replaced_and_can_be_undone(tmp_path: Path) -> None:
    repo = make(tmp_path)
    first = go(repo)
    sh(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    sh(clone, "branch", "-q", "--no-track", BRANCH, f"origin/{BRANCH}")
    again = go(clone, "run2")
    assert (again.kept, again.commits, again.run_id) == (True, first.commits, "run2")
    now = dgit.snapshot(clone)
    other = dgit.commit_steps(now, [Step("x", {"a.py": b"x = 3\n"})], branch=BRANCH, run_id="run3")
    assert (other.kept, other.previous) == (False, first.commits[-1][0])
    assert [dgit.undo(clone).run_id, dgit.undo(clone).run_id] == ["run3", "run2"]
    assert sh(clone, "branch", "--list", "ddpfix/*") == ""


def test_our_branch_under_a_rebase_is_left_alone(tmp_path: Path) -> None:
    repo = make(tmp_path)
    go(repo)
    put(repo, {"a.py": b"x = 5\n"})
    sh(repo, "commit", "-qam", "In the way")
    sh(repo, "rebase", "main", BRANCH, ok=False)
    before = everything(repo, ours=("none",))
    with pytest.raises(GitRefusal, match=f"checked out in {repo}"):
        go(repo, "run2")
    with pytest.raises(GitRefusal, match=f"checked out in {repo}"):
        dgit.undo(repo)
    assert everything(repo, ours=("none",)) == before


def test_a_second_run_replaces_and_undo_goes_back_one_by_one(tmp_path: Path) -> None:
    repo = make(tmp_path)
    clean = everything(repo)
    first = go(repo)
    put(repo, {"README.md": b"a new commit of the user\n"})
    sh(repo, "commit", "-qam", "more")
    second = go(repo, "run2")
    assert second.previous == first.commits[-1][0]
    assert sh(repo, "rev-parse", f"{BRANCH}~2") == sh(repo, "rev-parse", "main")
    with pytest.raises(GitRefusal, match="the run run2 has replaced it; undo run2 first"):
        dgit.undo(repo, "run1")
    undone = dgit.undo(repo)
    assert (undone.run_id, undone.restored, undone.back_to) == ("run2", first.commits[-1][0], None)
    assert sh(repo, "rev-parse", BRANCH) == first.commits[-1][0]
    assert dgit.undo(repo).restored is None
    assert sh(repo, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    with pytest.raises(GitRefusal, match="nothing to undo"):
        dgit.undo(repo)
    assert clean.keys() == everything(repo).keys()


def test_our_branch_from_another_base_is_still_ours(tmp_path: Path) -> None:
    repo = make(tmp_path)
    sh(repo, "switch", "-qc", "feature")
    put(repo, {"README.md": b"feature\n"})
    sh(repo, "commit", "-qam", "feature")
    go(repo)
    sh(repo, "switch", "-q", "main")
    assert go(repo, "run2").previous
    dgit.undo(repo)
    shutil.rmtree(repo / ".git/ddpfix")
    assert go(repo, "run3").previous


def test_a_branch_that_moves_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = make(tmp_path)
    now = dgit.snapshot(repo)
    steps = fixes(now)

    class Late(dict[str, bytes]):
        """Somebody makes the branch while the contents are being stored."""

        def items(self) -> dict_items[str, bytes]:
            if not sh(repo, "branch", "--list", BRANCH):
                sh(repo, "branch", BRANCH)
            return super().items()

    with pytest.raises(GitRefusal, match="could not be moved"):
        dgit.commit_steps(now, [Step("x", Late(steps[0].files))], branch=BRANCH, run_id="run1")
    assert sh(repo, "rev-parse", BRANCH) == sh(repo, "rev-parse", "main")
    assert journal.runs(repo / ".git/ddpfix") == []
