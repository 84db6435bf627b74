"""The last report of a project, kept in the user's cache folder and used only while no file of the project has changed.

A finding may rest on any file of the repository (a base class, a pin, a hook elsewhere), so the unit is the whole project:
the list of its files with their size, time and inode. A file that changed as late as the report was written is not trusted
(the same rule as git's index for "racy" entries).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from codemods.codemod import DdpCodemod
from ddpfix import __version__
from ddpfix.discovery import Tree
from ddpfix.results import Report
from ddpfix.settings import Settings

RACY = 2_000_000_000  # nanoseconds; the coarsest clock of a common file system
_ALLOWED = {
    ("codemods.findings", None),
    ("ddpfix.results", None),
    ("pathlib", None),
    ("builtins", "getattr"),
}


def folder() -> Path:
    """Where caches live: DDPFIX_CACHE_DIR, else the user's cache folder."""
    if own := os.environ.get("DDPFIX_CACHE_DIR"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ddpfix"


def key(tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod]) -> str:
    """What the answer depends on besides the files: version, Python, codemods and their code, settings, what was asked."""
    chosen = hashlib.sha256("\0".join(tree.chosen).encode("utf-8", "surrogateescape")).hexdigest()
    parts = [__version__, sys.version, settings.digest(), chosen, str(tree.root), *(c.code for c in codemods), _own_code()]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _own_code() -> str:
    """The newest change of this installation's own files, so that a working copy never answers with old findings."""
    import codemods
    import ddpfix

    newest = 0
    for package in (codemods, ddpfix):
        for place in package.__path__:
            for base, _, names in os.walk(place):
                for name in names:
                    if name.endswith(".py"):
                        newest = max(newest, os.stat(os.path.join(base, name)).st_mtime_ns)
    return str(newest)


def _state(tree: Tree) -> tuple[str, int]:
    """(digest of every file's size, time and inode; the latest time)."""
    base = os.fspath(tree.root)
    newest = 0
    rows = []
    for path in tree.files:
        try:
            about = os.stat(f"{base}/{path}", follow_symlinks=False)
        except OSError:
            rows.append(f"{path}\0-")
            continue
        newest = max(newest, about.st_mtime_ns)
        rows.append(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ino}")
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest(), newest


class _Restricted(pickle.Unpickler):
    """Reads nothing but the values this program writes: a cache file is not a place to run code from."""

    def find_class(self, module: str, name: str) -> object:
        if (module, None) in _ALLOWED or (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(tree: Tree, name: str) -> Report | None:
    """The stored report, if every file is as it was."""
    try:
        data = (folder() / f"{name}.report").read_bytes()
        state, written, report = _Restricted(io.BytesIO(data)).load()
    except Exception:  # whatever is wrong with a cache file, the answer is to work it out again
        return None
    now, newest = _state(tree)
    if now != state or newest > written - RACY or not isinstance(report, Report):
        return None
    return report


def store(tree: Tree, name: str, report: Report) -> None:
    """Keep a report; a cache that cannot be written is no reason to fail."""
    state, newest = _state(tree)
    written = time.time_ns()
    if newest > written - RACY:
        return
    with contextlib.suppress(OSError):
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        fresh = place / f"{name}.{os.getpid()}.tmp"
        fresh.write_bytes(pickle.dumps((state, written, report), protocol=5))
        os.replace(fresh, place / f"{name}.report")
