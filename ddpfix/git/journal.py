"""What a run did to a folder, written down before it is done: one JSON file a run in a journal folder.

The folder is `.git/ddpfix/` for a repository, a state folder of the caller's choice elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ddpfix import user_folders
from ddpfix.git.whole_files import replace_file


@dataclass(frozen=True)
class BranchRun:
    """A run that made or replaced a branch: `commit` is the tip it left, `previous` the tip it found.

    away_from: while a switch between `commit` and the user's own commit is made, that commit; a run that is found with it was
    cut short. away_ref: the user's branch then, None where HEAD is detached.
    """

    run_id: str
    root: str
    branch: str
    commit: str
    previous: str | None
    base: str
    head_ref: str | None
    away_from: str | None = None
    away_ref: str | None = None
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
    """The runs in a journal folder that can still be undone, oldest first; what is no entry is passed over.

    Raises OSError for an entry that cannot be read: it must not be taken for none.
    """
    found = [_load(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((run for run in found if run), key=lambda run: (run.at, run.run_id))


def user_state() -> Path:
    """The user's own folder for what programs keep between runs."""
    return Path(user_folders.state())


def passing_folder(path: Path) -> Path:
    """Where the passing name of a file of ours may be: in the repository's .git, else in the user's state folder."""
    above = path.resolve().parents
    folder = next((place / ".git" / "ddpfix" for place in above if (place / ".git").is_dir()), user_state())
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def record(folder: Path, run: Run) -> None:
    """Write `run` into the journal, whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"kind": type(run).__name__, **asdict(run)}, indent=1)
    replace_file(folder / f"{run.run_id}.json", text.encode(), None, by=folder)


def forget(folder: Path, run_id: str) -> None:
    """Take a run and its saved originals out of the journal. Raises OSError, with the run still in it."""
    (folder / f"{run_id}.json").unlink(missing_ok=True)
    shutil.rmtree(folder / run_id, ignore_errors=True)


def _load(path: Path) -> Run | None:
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        if data.pop("kind") == BranchRun.__name__:
            return BranchRun(**data)
        files = tuple(SavedFile(**file) for file in data.pop("files"))
        return InPlaceRun(files=files, **data)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
