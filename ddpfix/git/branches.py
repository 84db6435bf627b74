"""Whose a branch is: ours and untouched, or somebody else's and left alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ddpfix.git.journal import BranchRun, runs
from ddpfix.git.refusal import GitRefusal, in_worktree, shown
from ddpfix.git.runner import Git, repository
from ddpfix.git.snapshots import Snapshot

TRAILER = "ddpfix-run"


def check_branch(snapshot: Snapshot, branch: str) -> str | None:
    """The tip of the branch of ours that a run would replace, None for a new branch. Writes nothing.

    Raises GitRefusal: no valid name, in the way of another branch's name, somebody else's commits, or checked out.
    """
    with repository(snapshot.root) as git:
        return claim(git, snapshot, branch)


def claim(git: Git, snapshot: Snapshot, branch: str) -> str | None:
    """`check_branch` within a repository that is open already."""
    ref = f"refs/heads/{branch}"
    valid = not branch.startswith("-") and branch != "HEAD" and "\0" not in branch
    if not valid or git.run("check-ref-format", ref, check=False).status:
        raise GitRefusal(
            f"{shown(branch)!r} is not a branch name", "git does not allow it", "choose another with --branch"
        )
    _check_clash(git, ref)
    if snapshot.head_ref == ref:
        raise GitRefusal(
            f"the branch {branch} is checked out now",
            "a new run replaces it, on top of your own branch",
            "switch back to your branch or run `ddpfix undo` first, or choose another with --branch",
        )
    if halfway := _halfway(git, snapshot.root):
        raise GitRefusal(
            f"a switch to {halfway.branch} was cut short", "some files may be as they are there", "run `ddpfix undo` first"
        )
    if elsewhere := checked_out(git).get(ref):
        raise in_worktree(branch, elsewhere)
    tip = git.commit_of(ref)
    if tip and (foreign := _foreign_commit(git, branch, tip)):
        raise GitRefusal(
            f"the branch {branch} is left alone",
            f"it holds {foreign}, which is not from ddpfix",
            "choose another with --branch, or rename or delete that one",
        )
    return tip or None


def cut_short(root: Path) -> bool:
    """True if a switch of this work tree stopped half-way and is not put back yet. Raises GitRefusal."""
    with repository(root) as git:
        return _halfway(git, root) is not None


def _halfway(git: Git, root: Path) -> BranchRun | None:
    return next((run for run in branch_runs(git) if run.away_from and run.root == str(root)), None)


def _check_clash(git: Git, ref: str) -> None:
    """A ref is a file where git keeps it loose: `ddpfix` and `ddpfix/fixes` cannot both be."""
    parts = ref.split("/")
    above = {"/".join(parts[:end]) for end in range(3, len(parts))}
    refs = git.text("for-each-ref", "--format=%(refname)", "--", *above, ref).split("\n")
    if other := next((name for name in refs if name in above or name.startswith(f"{ref}/")), None):
        raise GitRefusal(
            f"the branch {ref.removeprefix('refs/heads/')} cannot be made",
            f"git cannot hold it beside the branch {other.removeprefix('refs/heads/')}",
            "choose another with --branch",
        )


def checked_out(git: Git) -> dict[str, str]:
    """ref -> work tree that has it checked out."""
    found: dict[str, str] = {}
    folder = ""
    for line in git.text("worktree", "list", "--porcelain").split("\n"):
        key, _, value = line.partition(" ")
        if key == "worktree":
            folder = value
        elif key == "branch":
            found[value] = folder
    # A branch under a rebase has no HEAD on it, but is written when the rebase ends.
    for mark in ("rebase-merge", "rebase-apply"):
        with suppress(OSError):
            found[(git.folder / mark / "head-name").read_text().strip()] = str(git.root)
    return found


def _foreign_commit(git: Git, branch: str, tip: str) -> str | None:
    """A commit on `branch` that no run made, in words; None where all are ours.

    A tip that the journal knows was left by us as it is; one with the trailer of a run that left another tip was
    amended. Without an entry (a branch fetched from elsewhere) every commit that stands on no other branch must carry
    the trailer.
    """
    left = [run for run in branch_runs(git) if run.branch == branch]
    if any(run.commit == tip for run in left):
        return None
    if _run_of(git, tip) in {run.run_id for run in left}:
        return described(git, tip)
    own = git.text("rev-list", tip, "--not", f"--exclude={branch}", "--branches", "HEAD", "--").split()
    return next((described(git, commit) for commit in (tip, *own) if not _run_of(git, commit)), None)


def _run_of(git: Git, commit: str) -> str:
    return git.text("log", "-1", f"--format=%(trailers:key={TRAILER},valueonly,separator=%x2C)", commit, "--").strip()


def described(git: Git, commit: str) -> str:
    """A commit in a few words for people."""
    return git.text("log", "-1", "--format=%h (%s, by %an)", commit, "--")


def branch_runs(git: Git) -> list[BranchRun]:
    """The runs in the journal that made a branch, oldest first."""
    return [run for run in runs(git.journal) if isinstance(run, BranchRun)]
