"""Checking a branch out, and taking a run back: the one step that writes the user's files.

git itself refuses, before it writes, if work would be lost.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ddpfix.git.at_work import holding
from ddpfix.git.branches import branch_runs, checked_out, described
from ddpfix.git.halfway import differences, not_as_in, put_back
from ddpfix.git.identity import author
from ddpfix.git.journal import BranchRun, forget, record
from ddpfix.git.refusal import GitRefusal, NothingToUndo, bare_refusal, check_run_id, in_worktree, named, shown
from ddpfix.git.runner import Git, Result, failed, repository
from ddpfix.git.snapshots import Snapshot, snapshot, under_way


@dataclass(frozen=True)
class Undone:
    """What `undo` did. `back_to` is the branch (or commit) that was switched back to, None where HEAD did not move.

    `restored` is the earlier tip of ours the branch has again, None where the branch is gone. `already_gone`: someone
    had deleted the branch before. `merged`: what is checked out contains the commits, so they are still in force.
    `put_back`: files of a switch that was cut short.
    """

    run_id: str
    branch: str
    back_to: str | None
    restored: str | None
    already_gone: bool
    merged: bool
    put_back: tuple[str, ...] = ()


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
    with repository(root) as git, holding(git):
        now = snapshot(root)
        check_switch(now, ())
        if now.head_ref == f"refs/heads/{branch}":
            return None
        backup = _back_up(git, now, run_id)
        run = next((run for run in branch_runs(git) if (run.run_id, run.branch) == (run_id, branch)), None)
        if run is None:
            raise GitRefusal(f"not switched to {branch}", f"no run {run_id} has made it", "give the id of a run")
        _switch(git, replace(run, away_from=now.base, away_ref=now.head_ref), branch, to=run.commit, backup=backup)
    return backup


def undo(root: Path, run_id: str | None = None) -> Undone:
    """Take back the last run (or `run_id`): switch away from its branch if that is checked out, then remove it.

    A branch that replaced an earlier one of ours points at that again. A switch that was cut short is put back first. What the
    way back needs goes last, when HEAD, index and files have been compared. Raises NothingToUndo; GitRefusal, with nothing
    changed: commits on the branch since, the branch checked out elsewhere, work that would be lost; and GitRefusal where
    something could not be put back, with all that is needed to try again.
    """
    with repository(root) as git:
        _run_to_undo(git, run_id)
        with holding(git), uninterrupted():
            run = _run_to_undo(git, run_id)
            tip = git.commit_of(f"refs/heads/{run.branch}")
            _check_untouched(git, run, tip)
            away, files = _leave(git, run, tip)
            return _remove(git, run, tip, away, files)


def _leave(git: Git, run: BranchRun, tip: str) -> tuple[str | None, tuple[str, ...]]:
    """Off the branch, by a switch or out of one that was cut short; (where to, files that were put back)."""
    if run.away_from:
        if not os.path.samefile(run.root, git.root):
            raise in_worktree(run.branch, run.root)
        before = git.head_ref()
        files = put_back(git, run)
        run = replace(run, away_from=None, away_ref=None)
        record(git.journal, run)
        after = git.head_ref()
        return (after.removeprefix("refs/heads/") or run.base if before != after else None), files
    ref = f"refs/heads/{run.branch}"
    now = snapshot(git.root) if tip else None
    if now and now.head_ref == ref and tip == run.commit:
        if now.operation:
            raise under_way(now.operation)
        return _switch_back(git, run), ()
    if tip and (elsewhere := checked_out(git).get(ref)):
        raise in_worktree(run.branch, elsewhere)
    return None, ()


def _remove(git: Git, run: BranchRun, tip: str, away: str | None, files: tuple[str, ...]) -> Undone:
    """The branch goes, or back to where it stood; then the backup, and last the entry in the journal."""
    ref = f"refs/heads/{run.branch}"
    if tip == run.commit and run.previous:
        git.run("update-ref", "-m", f"ddpfix: undo {run.run_id}", ref, run.previous, run.commit)
    elif tip == run.commit:
        git.run("update-ref", "-d", ref, run.commit)
    git.run("update-ref", "-d", _backup_ref(run.run_id))
    forget(git.journal, run.run_id)
    merged = git.run("merge-base", "--is-ancestor", run.commit, "HEAD", check=False).status == 0
    restored = run.previous if tip else None
    return Undone(run.run_id, run.branch, away, restored, already_gone=not tip, merged=merged, put_back=files)


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


def _switch(git: Git, run: BranchRun, *target: str, to: str, backup: str | None = None) -> None:
    """`git switch` to the commit `to`, with the way back in the journal meanwhile, and what it wrote compared with the commit.

    Raises GitRefusal: git refused before it wrote, or it could not write all; then what it wrote is put back.
    """
    command = ("switch", "--quiet", "--no-guess", "--no-overwrite-ignore", "--no-recurse-submodules", *target)
    assert run.away_from
    with uninterrupted():
        record(git.journal, run)
        done = git.run(*command, check=False)
        both = differences(git, run.away_from, run.commit)
        back = to != run.commit
        in_the_way = _in_the_way(done)
        failure: GitRefusal | None = None
        wrong: tuple[str, ...] = ()
        if in_the_way and back and not not_as_in(git, {path: other for path, (_, other) in both.items()}):
            put_back(git, run)  # what git takes for changes are the bytes that were committed
            in_the_way = []
        elif not in_the_way:
            failure = failed(command, done) if done.status else None
            wrong = () if failure else not_as_in(git, {path: sides[not back] for path, sides in both.items()})
            if failure or wrong:
                put_back(git, run)
        record(git.journal, replace(run, away_from=None, away_ref=None))
        if backup and (in_the_way or failure or wrong):
            git.run("update-ref", "-d", backup)
    what, as_it_was = f"not switched to {target[-1]}", "every file is as it was"
    if in_the_way:
        why = f"your uncommitted work in {named(in_the_way)} would be overwritten"
        raise GitRefusal(what, why, f"commit, stash or move it, then `git switch {' '.join(target)}`")
    if wrong:
        said = next((f" ({line[7:]})" for line in done.stderr.splitlines() if line.startswith("error: ")), "")
        todo = f"{as_it_was}; make these writable and run again, or use --no-switch"
        raise GitRefusal(what, f"git could not write {named(wrong)}{said}", todo)
    if failure:
        raise GitRefusal(what, failure.why, f"{as_it_was}; {failure.todo}")


def _in_the_way(done: Result) -> list[str]:
    """The files for whose sake git refused to switch, before it wrote anything."""
    if not done.status or "would be overwritten" not in done.stderr:
        return []
    return [line.strip() for line in done.stderr.splitlines() if line.startswith("\t")]


def _switch_back(git: Git, run: BranchRun) -> str:
    tip = git.commit_of(f"{run.head_ref}^{{commit}}") if run.head_ref else ""
    if tip and run.head_ref:
        name = run.head_ref.removeprefix("refs/heads/")
        _switch(git, replace(run, away_from=tip, away_ref=run.head_ref), name, to=tip)
        return name
    _switch(git, replace(run, away_from=run.base), "--detach", run.base, to=run.base)
    return run.base


def _run_to_undo(git: Git, run_id: str | None) -> BranchRun:
    found = [run for run in branch_runs(git) if run_id in (None, run.run_id)]
    if not found:
        which = "no run" if run_id is None else f"no run {shown(run_id)}"
        raise NothingToUndo("nothing to undo", f"{which} has made a branch here", "see `git branch --list 'ddpfix/*'`")
    return found[-1]


def _check_untouched(git: Git, run: BranchRun, tip: str) -> None:
    # No tip: somebody deleted the branch. The tip before: this run, or its undo, was cut short there.
    if tip in (run.commit, run.previous, ""):
        return
    later = next(
        (other.run_id for other in branch_runs(git) if (other.branch, other.commit) == (run.branch, tip)), None
    )
    why = f"the run {later} has replaced it" if later else f"it has moved on to {described(git, tip)}"
    todo = f"undo {later} first" if later else f"keep what you need, then `git branch -D {run.branch}`"
    raise GitRefusal(f"the branch {run.branch} is not undone", why, todo)
