"""One ddpfix at a time at work in a repository, and what a killed one left locked.

The lock is the kernel's, on the journal folder: it ends with the process that holds it and with the git it started. The file
`at-work` says that somebody is at it; who finds it without the lock comes after a kill. Only then, or after a git that was
killed alone, a lock file of git is taken away: it must be younger than that work, and no git may be running in the work tree.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ddpfix.git.journal import BranchRun, InPlaceRun, runs
from ddpfix.git.refusal import GitRefusal, shown
from ddpfix.git.runner import Git
from ddpfix.git.whole_files import sweep

if sys.platform != "win32":
    import fcntl

PATIENCE = 30.0  # seconds that a second ddpfix waits
_MARK = "at-work"
_SAVED = re.compile("[0-9a-f]{16}")  # originals of a run in place


@contextmanager
def at_work(folder: Path) -> Iterator[int]:
    """The lock of a journal folder, as a file descriptor for child processes. Raises GitRefusal: another ddpfix is at work, or
    something could not be written.
    """
    try:
        held = _locked(folder)
        try:
            if (folder / _MARK).exists():
                _sweep_journal(folder)
            else:
                (folder / _MARK).touch()
            try:
                yield held
            except BaseException:
                with contextlib.suppress(OSError):
                    _sweep_journal(folder)
                raise
            finally:
                with contextlib.suppress(OSError):
                    (folder / _MARK).unlink(missing_ok=True)
                    folder.rmdir()  # as far as nothing is in it: who waits for its lock makes a new one
        finally:
            os.close(held)
    except OSError as error:
        raise not_written(error) from error


@contextmanager
def holding(git: Git) -> Iterator[None]:
    """`at_work` for a repository: git's own lock files that a killed run left are taken away before and after."""
    git.run("rev-parse", "--git-dir")  # somebody else's repository, or a broken one: refused before anything is written
    with at_work(git.journal) as held:
        git.held = (held,)
        try:
            clear_locks(git)
            (git.journal / _MARK).touch()  # what is locked from here on is ours
            yield
        except BaseException:
            with contextlib.suppress(OSError, GitRefusal):
                clear_locks(git)
            raise
        finally:
            git.held = ()


def clear_locks(git: Git) -> None:
    """Remove the lock files that a killed git of ours left. Raises GitRefusal where some other git may own them."""
    since = (git.journal / _MARK).stat().st_mtime_ns
    left = [lock for lock in _locks(git) if lock.exists() and lock.stat().st_mtime_ns >= since]
    if left and _git_runs(git.root):
        raise GitRefusal(f"{shown(str(left[0]))} is there", "a git is at work in this repository", "wait for it and run again")
    for lock in left:
        lock.unlink(missing_ok=True)


def not_written(error: OSError) -> GitRefusal:
    """The refusal for a disk that is full or a place that is closed."""
    where = shown(str(error.filename2 or error.filename or "the files"))
    todo = "see to that and run again; `ddpfix undo` puts back what is not as it was"
    return GitRefusal(f"could not write {where}", error.strerror or str(error), todo)


def _locked(folder: Path) -> int:
    """The folder, opened and locked: the one that stands there then, as whoever had it before may have taken it away."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            held = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            _wait_for(held, folder)
            if folder.exists() and os.path.samestat(os.fstat(held), folder.stat()):
                return held
        except BaseException:
            os.close(held)
            raise
        os.close(held)


def _wait_for(held: int, folder: Path) -> None:
    if sys.platform == "win32":  # no such lock there
        return
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                why = "it has not ended for half a minute"
                raise GitRefusal("another ddpfix is at work here", why, f"wait for it ({shown(str(folder))})") from None
            time.sleep(0.05)
        except OSError:  # a file system without such locks
            return


def _locks(git: Git) -> Iterable[Path]:
    common = git.journal.parent
    branches = {run.branch for run in runs(git.journal) if isinstance(run, BranchRun)}
    yield from (git.folder / "index.lock", git.folder / "HEAD.lock", common / "packed-refs.lock")
    yield from (common / "refs" / "heads" / f"{branch}.lock" for branch in sorted(branches))
    yield from (common / "refs" / "ddpfix" / "backup").glob("*.lock")


def _git_runs(root: Path) -> bool:
    """True if a git process stands in the work tree; False where processes cannot be seen."""
    inside = str(root.resolve())
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().startswith("git"):
                where = os.readlink(process / "cwd")
                if where == inside or where.startswith(f"{inside}/"):
                    return True
    return False


def _sweep_journal(folder: Path) -> None:
    """After a kill: passing files, and originals whose run was never written down or is forgotten."""
    known = runs(folder)
    in_place = [run for run in known if isinstance(run, InPlaceRun)]
    beside = {(Path(run.root) / file.path).parent for run in in_place for file in run.files}
    sweep(folder, beside)
    for saved in folder.iterdir():
        if _SAVED.fullmatch(saved.name) and saved.is_dir() and not (folder / f"{saved.name}.json").exists():
            shutil.rmtree(saved, ignore_errors=True)
