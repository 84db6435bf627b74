"""Checking a branch out, and taking a run back: the one step that writes the user's files.

git itself refuses, before it writes, if work would be lost.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ddpfix.git.branches import branch_runs, checked_out, described
from ddpfix.git.identity import author
from ddpfix.git.journal import BranchRun, forget
from ddpfix.git.refusal import GitRefusal, bare_refusal, check_run_id, in_worktree, named, shown
from ddpfix.git.runner import Git, failed, repository
from ddpfix.git.snapshots import Snapshot, snapshot, under_way


@dataclass(frozen=True)
class Undone:
    """What `undo` did. `back_to` is the branch (or commit) that was switched back to, None where HEAD did not move.

    `restored` is the earlier tip of ours the branch has again, None where the branch is gone. `already_gone`: someone
    had deleted the branch before. `merged`: what is checked out contains the commits, so they are still in force.
    """

    run_id: str
    branch: str
    back_to: str | None
    restored: str | None
    already_gone: bool
    merged: bool


def check_switch(snapshot: Snapshot, paths: Iterable[str]) -> None:
    """Raises GitRefusal where a switch to commits that change `paths` would be refused. Writes nothing."""
    if snapshot.bare:
        raise bare_refusal(snapshot.root)
    if snapshot.operation:
        raise under_way(snapshot.operation)
    if conflicts := [path for path, status in snapshot.dirty.items() if "U" in status or status in ("AA", "DD")]:
        raise GitRefusal("files have unresolved conflicts", named(conflicts), "resolve them first, or use --no-switch")
    wanted = sorted(set(paths))
    instead = "commit or stash them, or use --include-dirty (fix them where they stand) or --no-switch (branch only)"
    if dirty := [path for path in wanted if path in snapshot.dirty]:
        raise GitRefusal("files to fix have uncommitted changes", named(dirty), instead)
    new = (path for path in wanted if path not in snapshot.committed)
    if there := [path for path in new if os.path.lexists(snapshot.root / path)]:
        raise GitRefusal(
            "files to add are there already, uncommitted", named(there), "move them away, or use --no-switch"
        )


def switch_to(root: Path, branch: str, *, run_id: str) -> str | None:
    """Check `branch` out; uncommitted work that is not in the way comes along.

    First the uncommitted tracked work, if any, is stored as a commit under `refs/ddpfix/backup/<run_id>`; returns that
    ref or None. Raises GitRefusal, with nothing changed: an operation under way, no work tree, or (named) files whose
    uncommitted work would be lost.
    """
    check_run_id(run_id)
    now = snapshot(root)
    check_switch(now, ())
    if now.head_ref == f"refs/heads/{branch}":
        return None
    with repository(root) as git:
        backup = _back_up(git, now, run_id)
        _switch(git, branch, backup=backup)
    return backup


def undo(root: Path, run_id: str | None = None) -> Undone:
    """Take back the last run (or `run_id`): switch away from its branch if that is checked out, then remove it.

    A branch that replaced an earlier one of ours points at that again. Raises GitRefusal, with nothing changed:
    nothing to undo, commits on the branch since, the branch checked out elsewhere, work that would be lost.
    """
    now = snapshot(root)
    with repository(root) as git:
        run = _run_to_undo(git, run_id)
        ref = f"refs/heads/{run.branch}"
        tip = git.run("rev-parse", "--verify", "--quiet", ref, check=False).text
        if not tip:
            _forget(git, run.run_id)
            return Undone(run.run_id, run.branch, None, None, already_gone=True, merged=False)
        _check_untouched(git, run, tip)
        back_to = None
        if now.head_ref == ref:
            if now.operation:
                raise under_way(now.operation)
            back_to = _switch_back(git, run)
        elif elsewhere := checked_out(git).get(ref):
            raise in_worktree(run.branch, elsewhere)
        if run.previous:
            git.run("update-ref", "-m", f"ddpfix: undo {run.run_id}", ref, run.previous, run.commit)
        else:
            git.run("update-ref", "-d", ref, run.commit)
        _forget(git, run.run_id)
        merged = git.run("merge-base", "--is-ancestor", run.commit, "HEAD", check=False).status == 0
        return Undone(run.run_id, run.branch, back_to, run.previous, already_gone=False, merged=merged)


def _back_up(git: Git, snapshot: Snapshot, run_id: str) -> str | None:
    """Uncommitted tracked work as a commit under a ref of ours; through a copy of the index, which it refreshes."""
    with tempfile.TemporaryDirectory(prefix="ddpfix-") as folder:
        copy = Path(folder, "index")
        with suppress(FileNotFoundError):
            copy.write_bytes((git.folder / "index").read_bytes())
        env = {"GIT_INDEX_FILE": str(copy), **author(git)[0]}
        # What `git add -N` announced must be added for `git stash create` to take it.
        announced = b"".join(os.fsencode(path) + b"\0" for path, status in snapshot.dirty.items() if status == " A")
        git.run("update-index", "--add", "--remove", "-z", "--stdin", data=announced, env=env)
        # A file that was only touched is no change, and yet fails `git stash create`; exit 1 only says that others did change.
        git.run("update-index", "-q", "--refresh", check=False, env=env)
        stash = git.text("stash", "create", f"before ddpfix {run_id}", env=env)
    if not stash:
        return None
    ref = _backup_ref(run_id)
    git.run("update-ref", "-m", f"ddpfix: {run_id}", ref, stash)
    return ref


def _backup_ref(run_id: str) -> str:
    return f"refs/ddpfix/backup/{run_id}"


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the end of the block, for child processes too: a switch cut short leaves a half-written tree."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _switch(git: Git, *target: str, backup: str | None = None) -> None:
    command = ("switch", "--quiet", "--no-guess", "--no-overwrite-ignore", "--no-recurse-submodules", *target)
    with uninterrupted():
        done = git.run(*command, check=False)
    if not done.status:
        return
    in_the_way = [line.strip() for line in done.stderr.splitlines() if line.startswith("\t")]
    if "would be overwritten" in done.stderr and in_the_way:
        if backup:
            git.run("update-ref", "-d", backup)
        raise GitRefusal(
            f"not switched to {target[-1]}",
            f"your uncommitted work in {named(in_the_way)} would be overwritten",
            f"commit, stash or move it, then `git switch {' '.join(target)}`",
        )
    refusal = failed(command, done)
    kept = f"; your uncommitted work is also kept as {backup}" if backup else ""
    raise GitRefusal(f"not switched to {target[-1]}", refusal.why, refusal.todo + kept)


def _switch_back(git: Git, run: BranchRun) -> str:
    there = run.head_ref and not git.run("show-ref", "--verify", "--quiet", run.head_ref, check=False).status
    if there and run.head_ref:
        name = run.head_ref.removeprefix("refs/heads/")
        _switch(git, name)
        return name
    _switch(git, "--detach", run.base)
    return run.base


def _run_to_undo(git: Git, run_id: str | None) -> BranchRun:
    found = [run for run in branch_runs(git) if run_id in (None, run.run_id)]
    if not found:
        which = "no run" if run_id is None else f"no run {shown(run_id)}"
        raise GitRefusal("nothing to undo", f"{which} has made a branch here", "see `git branch --list 'ddpfix/*'`")
    return found[-1]


def _check_untouched(git: Git, run: BranchRun, tip: str) -> None:
    if tip == run.commit:
        return
    later = next(
        (other.run_id for other in branch_runs(git) if (other.branch, other.commit) == (run.branch, tip)), None
    )
    why = f"the run {later} has replaced it" if later else f"it has moved on to {described(git, tip)}"
    todo = f"undo {later} first" if later else f"keep what you need, then `git branch -D {run.branch}`"
    raise GitRefusal(f"the branch {run.branch} is not taken back", why, todo)


def _forget(git: Git, run_id: str) -> None:
    git.run("update-ref", "-d", _backup_ref(run_id), check=False)
    forget(git.journal, run_id)
