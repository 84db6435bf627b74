"""Files written where they stand, all or none, and the way back.

The originals of a run lie beside its journal entry, in a folder of the run's name.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ddpfix.git.at_work import at_work
from ddpfix.git.journal import InPlaceRun, SavedFile, forget, record, runs
from ddpfix.git.refusal import GitRefusal, NothingToUndo, check_relative, check_run_id, named, shown
from ddpfix.git.whole_files import replace_file, sweep


def write_in_place(root: Path, files: Mapping[str, bytes], *, run_id: str, state_dir: Path) -> InPlaceRun:
    """Replace the files of `root` by `files` (path -> whole new bytes), each in one step, all or none.

    A file keeps its mode; nothing is written through a symbolic link. The originals and the journal lie in `state_dir`
    for `undo_in_place`. Returns what was written. Raises GitRefusal, with every file as it was.
    """
    check_run_id(run_id)
    root = root.resolve()
    targets = {path: _plain_file(root, path) for path in sorted(files)}
    if (state_dir / run_id).exists() or (state_dir / f"{run_id}.json").exists():
        raise GitRefusal(f"nothing was written to {root}", f"the run {run_id} exists already", "use a new run id")
    with at_work(state_dir):
        try:
            saved = _save(targets, files, state_dir / run_id)
            run = InPlaceRun(run_id, str(root), saved)
            record(state_dir, run)
            _write_all([_Content(targets[path], files[path], None) for path in targets], state_dir)
        except _HalfWritten as error:
            todo = "see to these and run `ddpfix undo`, which has the originals"
            raise GitRefusal(f"could not write to {root}", str(error), todo) from error
        except BaseException as error:  # every file is as it was
            with suppress(OSError):
                forget(state_dir, run_id)
            if isinstance(error, OSError):
                raise _not_written(error) from error
            raise
    return run


def undo_in_place(root: Path, state_dir: Path, *, run_id: str | None = None) -> InPlaceRun:
    """Give the files of the last run in place below `root` (or of `run_id`) their old bytes and modes back.

    Returns the run that was undone. Raises GitRefusal, with every file as it was, where there is no such run or a
    file has changed since.
    """
    root = root.resolve()
    here = [run for run in runs(state_dir) if isinstance(run, InPlaceRun) and run.root == str(root)]
    run = next((run for run in reversed(here) if run_id in (None, run.run_id)), None)
    if run is None:
        which = "no run" if run_id is None else f"no run {shown(run_id)}"
        raise NothingToUndo("nothing to undo", f"{which} has written files in {root}", "see that this is the right folder")
    with at_work(state_dir):
        originals = {file: _original(root, state_dir / run.run_id, file) for file in run.files}
        # A file that still has its old bytes belongs to a run that was cut short.
        changed = [
            file.path
            for file, old in originals.items()
            if (now := _current(_plain_file(root, file.path))).content != old.content and _digest(now) != file.written
        ]
        if changed:
            raise GitRefusal(
                f"the run {run.run_id} is not undone",
                f"changed since: {named(changed)}",
                f"take what you need from the originals in {state_dir / run.run_id}",
            )
        try:
            _write_all(list(originals.values()), state_dir)
        except _HalfWritten as error:
            todo = "see to these and run `ddpfix undo` again, which has the originals"
            raise GitRefusal(f"could not undo {run.run_id}", str(error), todo) from error
        except OSError as error:
            raise _not_written(error) from error
        sweep(state_dir, {(root / file.path).parent for file in run.files})
        forget(state_dir, run.run_id)
    return run


@dataclass(frozen=True)
class _Content:
    """What a path is to hold: `content` None = no file, `mode` None = the mode it has."""

    path: Path
    content: bytes | None
    mode: int | None


class _HalfWritten(Exception):
    """Some files are new, and giving them their old bytes back failed as well."""


def _plain_file(root: Path, path: str) -> Path:
    """The place of `path` below `root`, where it and the folders on the way are what they seem."""
    check_relative(path)
    target = root
    for part in path.split("/"):
        target = target / part
        if target.is_symlink():
            raise GitRefusal(
                f"{shown(path)} is not written", f"{shown(str(target))} is a symbolic link", "fix the file it points to"
            )
    if target.exists() and not target.is_file():
        raise GitRefusal(f"{shown(path)} is not written", "it is not an ordinary file", "leave it out")
    return target


def _save(targets: Mapping[str, Path], files: Mapping[str, bytes], folder: Path) -> tuple[SavedFile, ...]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    saved = []
    for number, (path, target) in enumerate(targets.items()):
        written = hashlib.sha256(files[path]).hexdigest()
        before = _current(target)
        if before.content is None:
            saved.append(SavedFile(path, written, None, None))
        else:
            (folder / str(number)).write_bytes(before.content)
            saved.append(SavedFile(path, written, str(number), before.mode))
    return tuple(saved)


def _write_all(wanted: Sequence[_Content], by: Path) -> None:
    """Give every path its content, or, after any failure (Ctrl-C too), give those already written their old one.

    Raises _HalfWritten where that fails as well, whatever it was.
    """
    before: list[_Content] = []
    try:
        for one in wanted:
            before.append(_current(one.path))
            _put(one, by)
    except BaseException as error:
        lost = []
        for old in before:
            try:
                _put(old, by)
            except BaseException:
                lost.append(str(old.path))
        if lost:
            raise _HalfWritten(f"{error}, and could not be restored: {named(lost)}") from error
        raise


def _current(path: Path) -> _Content:
    try:
        return _Content(path, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    except FileNotFoundError:
        return _Content(path, None, None)


def _put(wanted: _Content, by: Path) -> None:
    now = _current(wanted.path)
    mode = now.mode if wanted.mode is None else wanted.mode
    if (now.content, now.mode) == (wanted.content, mode):
        return
    if wanted.content is None:
        wanted.path.unlink(missing_ok=True)
    else:
        replace_file(wanted.path, wanted.content, mode, by=by)


def _original(root: Path, saved: Path, file: SavedFile) -> _Content:
    return _Content(root / file.path, (saved / file.original).read_bytes() if file.original else None, file.mode)


def _digest(now: _Content) -> str | None:
    return None if now.content is None else hashlib.sha256(now.content).hexdigest()


def _not_written(error: OSError) -> GitRefusal:
    where = shown(str(error.filename2 or error.filename or "the files"))
    return GitRefusal(
        f"could not write {where}", error.strerror or str(error), "every file is as it was; repair this and run again"
    )
