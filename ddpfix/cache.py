"""The last report of a project, kept in the user's cache folder and used only while no file of the project has changed.

A finding may rest on any file of the repository (a base class, a pin, a hook elsewhere), so the unit is the whole project:
the list of its files with their size, time and inode. A file that changed as late as the report was written is not trusted
(the same rule as git's index for "racy" entries).
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from codemods.api import findings
from codemods.api.codemod import DdpCodemod
from codemods.runtime.record import record
from ddpfix import __version__, answers
from ddpfix.discovery import Tree
from ddpfix.results import Failure, Report
from ddpfix.settings import Settings


def key(tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod] | None) -> str:
    """What the answer depends on besides the files: version, Python, codemods and their code, settings, what was asked.

    codemods: None for those that the settings select; then what is installed stands for them, so that none is imported.
    """
    asked = "\0".join((*tree.chosen, "", *(f.path for f in tree.skipped)))
    chosen = _digest(asked)
    parts = [__version__, sys.version, settings.digest(), chosen, str(tree.root), answers.code_state(), repr(tree.observed)]
    if codemods is not None:
        parts += [f"{c.code} {_time_of(c)}" for c in codemods]
    return _digest("\0".join(parts))[:32]


def key_of_judgements(tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod]) -> str:
    """What the judgement of a file depends on besides the files; not on which other files were asked about."""
    parts = [__version__, sys.version, settings.digest(), str(tree.root), answers.code_state(), repr(tree.observed)]
    return _digest("\0".join((*parts, *(c.code for c in codemods))))[:32]


def _digest(text: str) -> str:
    import hashlib  # with OpenSSL: 5 ms

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _time_of(codemod: DdpCodemod) -> int:
    """When the file of a codemod changed, so that the findings of a plug-in's old code are never given."""
    own = getattr(sys.modules.get(type(codemod).__module__), "__file__", None)
    return os.stat(own).st_mtime_ns if own and os.path.exists(own) else 0


@record
class State:
    """Every file of a tree as it was before it was read: a digest of sizes, times and inodes, and the latest time."""

    digest: str
    newest: int


def state_of(tree: Tree) -> State:
    """To be taken before the files are read: what changes later is then seen to have changed."""
    base = os.fspath(tree.root)
    newest = 0
    rows = []
    for path in tree.files:
        try:
            about = os.stat(f"{base}/{path}", follow_symlinks=False)
        except OSError:
            rows.append(f"{path}\0-")
            continue
        # the time of the last change cannot be set back by a tool, unlike that of the contents
        newest = max(newest, about.st_mtime_ns, about.st_ctime_ns)
        rows.append(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0{about.st_ctime_ns}\0{about.st_ino}")
    return State(_digest("\n".join(rows)), newest)


def load(tree: Tree, name: str, state: State) -> Report | None:
    """The stored report, if every file is as it was."""
    from ddpfix.unpickling import Restricted

    try:
        digest, written, rows = Restricted(io.BytesIO(read(f"{name}.report"))).load()
        if digest != state.digest or state.newest > written - answers.RACY:
            return None
        found, scanned, parsed, failed, elapsed, left_out = rows
        kinds = {*map(type, found), *map(type, failed), *map(type, (scanned, parsed, elapsed, left_out))}
        if not kinds <= {findings.Finding, Failure, int, float}:
            return None
        report = Report(tree.root, found, scanned, parsed, failed, elapsed, left_out)
    except Exception:  # whatever is wrong with a cache file, the answer is to work it out again
        return None
    return report


def knows(tree: Tree, settings: Settings) -> bool:
    """True if the stored report of what the settings select is one of the files as they are now."""
    return load(tree, key(tree, settings, None), state_of(tree)) is not None


def store(name: str, state: State, report: Report) -> None:
    """Keep a report; a cache that cannot be written is no reason to fail."""
    import pickle

    written = time.time_ns()
    if state.newest > written - answers.RACY:
        return
    rows = (report.findings, report.scanned, report.parsed, report.failed, report.elapsed, report.left_out)
    write(f"{name}.report", pickle.dumps((state.digest, written, rows), protocol=5))


def write(name: str, data: bytes) -> None:
    """Put a file of that name into the cache folder, whole or not at all; where that cannot be done, nothing happens."""
    place = Path(answers.folder())
    fresh = place / f"{name}.tmp"  # of two writers at once the checksum lets neither spoil the other's
    try:
        place.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(answers.sealed(data))
        os.replace(fresh, place / name)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()


def read(name: str) -> bytes:
    """What `write` was given. Raises OSError where there is none, ValueError where it is not the same any more."""
    return answers.opened((Path(answers.folder()) / name).read_bytes())
