"""Pipes and devices with names of files that are read: neither git nor a walk lists them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

from codemods.files.text_file import READ_KINDS
from ddpfix.results import Failure

NO_FILE = "no ordinary file"
MOST = 10_000  # entries of folders without any file of the project: ignored ones may hold millions


def unlisted(
    root: Path, listed: Set[str], prefixes: Sequence[str], never: Set[str], marks: Sequence[str], excluded: Callable[[str], bool]
) -> Iterator[Failure]:
    """Those in the folders that files are listed of. never: folders that are not entered; marks: names of project files."""
    folders = {"", *prefixes, *(name.rpartition("/")[0] for name in (*listed, *prefixes))}
    stack, room, base = list(folders), MOST, os.fspath(root)
    while stack:
        below = f"{folder}/" if (folder := stack.pop()) else ""
        try:
            entries = os.listdir(f"{base}/{folder}")
        except OSError:
            continue
        room -= 0 if folder in folders else len(entries)
        for name in [below + entry for entry in entries if entry not in never]:
            if name in listed or (name in folders and name not in prefixes):
                continue
            mode = _mode(f"{base}/{name}")
            if stat.S_ISDIR(mode):
                stack += [name] if room > 0 else []
            elif mode and not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and _is_read(name, marks):
                if not excluded(name):
                    yield Failure(name, NO_FILE)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _is_read(name: str, marks: Sequence[str]) -> bool:
    from codemods.analysis.requirement_files import reader_of

    return name.endswith((".py", ".gitignore", *marks, *READ_KINDS)) or reader_of(name) is not None
