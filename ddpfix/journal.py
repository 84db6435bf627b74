"""What a run did to a folder, written down before it is done, and the way back: the journal, and writes in place.

A run is one JSON file in a journal folder: `.git/ddpfix/` for a repository, a state folder of the caller's choice
elsewhere. The originals of a run in place lie beside it, in a folder of the run's name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# A run id becomes a file name, a part of a ref name and a trailer.
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


class GitRefusal(Exception):
    """What is not done to a repository or folder (`what`), `why`, and what to do instead (`todo`): a line each."""

    def __init__(self, what: str, why: str, todo: str) -> None:
        self.what, self.why, self.todo = (" ".join(text.split()) for text in (what, why, todo))
        super().__init__(self.what, self.why, self.todo)

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.todo}"


@dataclass(frozen=True)
class BranchRun:
    """A run that made or replaced a branch: `commit` is the tip it left, `previous` the tip it found."""

    run_id: str
    root: str
    branch: str
    commit: str
    previous: str | None
    base: str
    head_ref: str | None
    at: int = field(default_factory=time.time_ns)


@dataclass(frozen=True)
class SavedFile:
    """One file of a run in place; `original` names its saved bytes and is None where there was no file before."""

    path: str
    written: str
    original: str | None
    mode: int | None


@dataclass(frozen=True)
class InPlaceRun:
    """A run that wrote files where they stand."""

    run_id: str
    root: str
    files: tuple[SavedFile, ...]
    at: int = field(default_factory=time.time_ns)


Run = BranchRun | InPlaceRun


def runs(folder: Path) -> list[Run]:
    """The runs in a journal folder that can still be taken back, oldest first; an unreadable entry is passed over."""
    found = [_load(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((run for run in found if run), key=lambda run: (run.at, run.run_id))


def record(folder: Path, run: Run) -> None:
    """Write `run` into the journal, whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"kind": type(run).__name__, **asdict(run)}, indent=1)
    _replace(folder / f"{run.run_id}.json", text.encode(), None)


def forget(folder: Path, run_id: str) -> None:
    """Take a run and its saved originals out of the journal, as far as they are there and can be removed."""
    with contextlib.suppress(OSError):
        (folder / f"{run_id}.json").unlink(missing_ok=True)
    shutil.rmtree(folder / run_id, ignore_errors=True)


def check_run_id(run_id: str) -> None:
    """Raises GitRefusal for a run id that cannot be a file name and a part of a ref."""
    if not _RUN_ID.fullmatch(run_id):
        raise GitRefusal(
            f"{shown(run_id)} is not a run id", "it may hold letters, digits, - and _ only", "give the id of a run"
        )


def check_relative(path: str) -> None:
    """Raises GitRefusal unless `path` is a plain posix path below a root (never absolute, `..` or in `.git`)."""
    parts = path.split("/")
    if "\0" in path or os.path.isabs(path) or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise GitRefusal(
            f"{shown(path)} is not written",
            "it is not a path inside the project",
            "give paths below the project's root",
        )


def shown(path: str) -> str:
    """A path as one readable line: control characters and bytes that are no text are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def named(paths: Iterable[str], limit: int = 8) -> str:
    """Paths as part of a sentence, with the number of those left out."""
    names = sorted(shown(path) for path in paths)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


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
    try:
        saved = _save(targets, files, state_dir / run_id)
        run = InPlaceRun(run_id, str(root), saved)
        record(state_dir, run)
        _write_all([_Content(targets[path], files[path], None) for path in targets])
    except OSError as error:
        forget(state_dir, run_id)
        raise _not_written(error) from error
    except _HalfWritten as error:
        raise GitRefusal(
            f"could not write to {root}", str(error), f"copy the originals back from {state_dir / run_id}"
        ) from error
    except BaseException:
        forget(state_dir, run_id)
        raise
    return run


def undo_in_place(root: Path, state_dir: Path, *, run_id: str | None = None) -> InPlaceRun:
    """Give the files of the last run in place below `root` (or of `run_id`) their old bytes and modes back.

    Returns the run that was taken back. Raises GitRefusal, with every file as it was, where there is no such run or a
    file has changed since.
    """
    root = root.resolve()
    here = [run for run in runs(state_dir) if isinstance(run, InPlaceRun) and run.root == str(root)]
    run = next((run for run in reversed(here) if run_id in (None, run.run_id)), None)
    if run is None:
        which = "no run" if run_id is None else f"no run {shown(run_id)}"
        raise GitRefusal("nothing to undo", f"{which} has written files in {root}", "see that this is the right folder")
    try:
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
        _write_all(list(originals.values()))
    except OSError as error:
        raise _not_written(error) from error
    except _HalfWritten as error:
        raise GitRefusal(
            f"could not undo {run.run_id}", str(error), f"copy the originals back from {state_dir / run.run_id}"
        ) from error
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


def _load(path: Path) -> Run | None:
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        if data.pop("kind") == BranchRun.__name__:
            return BranchRun(**data)
        files = tuple(SavedFile(**file) for file in data.pop("files"))
        return InPlaceRun(files=files, **data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


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


def _write_all(wanted: Sequence[_Content]) -> None:
    """Give every path its content, or, after any failure (Ctrl-C too), give those already written their old one."""
    before: list[_Content] = []
    try:
        for one in wanted:
            before.append(_current(one.path))
            _put(one)
    except BaseException as error:
        lost = []
        for old in before:
            try:
                _put(old)
            except OSError:
                lost.append(str(old.path))
        if lost:
            raise _HalfWritten(f"{error}, and could not be restored: {named(lost)}") from error
        raise


def _current(path: Path) -> _Content:
    try:
        return _Content(path, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    except FileNotFoundError:
        return _Content(path, None, None)


def _put(wanted: _Content) -> None:
    now = _current(wanted.path)
    mode = now.mode if wanted.mode is None else wanted.mode
    if (now.content, now.mode) == (wanted.content, mode):
        return
    if wanted.content is None:
        wanted.path.unlink(missing_ok=True)
    else:
        _replace(wanted.path, wanted.content, mode)


def _replace(path: Path, content: bytes, mode: int | None) -> None:
    """A new file under a passing name in the same folder, then one rename: no reader ever sees half a file."""
    passing = path.with_name(f".ddpfix-{secrets.token_hex(6)}")
    try:
        with open(passing, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(passing, mode)
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink(missing_ok=True)
        raise


def _original(root: Path, saved: Path, file: SavedFile) -> _Content:
    return _Content(root / file.path, (saved / file.original).read_bytes() if file.original else None, file.mode)


def _digest(now: _Content) -> str | None:
    return None if now.content is None else hashlib.sha256(now.content).hexdigest()


def _not_written(error: OSError) -> GitRefusal:
    where = shown(str(error.filename2 or error.filename or "the files"))
    return GitRefusal(
        f"could not write {where}", error.strerror or str(error), "every file is as it was; mend this and run again"
    )
