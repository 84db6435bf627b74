"""How a path inside a project is shown: relative to the folder the user stands in, posix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Shown = Callable[[str], str]


def shown_from(root: Path, folder: Path) -> Shown:
    """A function from a path below `root` to the path as seen from `folder`."""
    base, start = os.fspath(root), os.fspath(folder)
    if base == start:
        return lambda path: path
    return lambda path: os.path.relpath(f"{base}/{path}", start).replace(os.sep, "/")
