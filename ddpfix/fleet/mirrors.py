"""Clones that are kept between runs, within a budget: of a repository that changed, only what is new is fetched.

A folder a worker, on its own disk. What is in a clone is what its server sent; nothing of it is run, and no token is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Kept:
    """A clone in the folder: which, how large, when it was used last."""

    key: str
    size: int
    used: float
    record: Path


@dataclass(frozen=True, slots=True)
class Mirrors:
    """budget: bytes that all clones together may hold; what was used longest ago goes first."""

    folder: Path
    budget: int

    @contextmanager
    def held(self, url: str) -> Iterator[Path | None]:
        """The place of the clone of an address, for us alone; None where another process has it. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = hashlib.sha256(url.encode()).hexdigest()[:32]
        with _locked(self.folder / f"{key}.lock") as ours:
            place = self._place(key)
            yield place if ours else None
            if ours:
                self._note(key, place)
        self._trim()

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}.git"

    def _note(self, key: str, place: Path) -> None:
        """Write down how large it is, in the name of an empty file, whose time says when it was used."""
        for old in self.folder.glob(f"{key}.*.size"):
            old.unlink(missing_ok=True)
        if place.exists():
            (self.folder / f"{key}.{_size(place)}.size").touch()

    def _trim(self) -> None:
        found = sorted(self._all(), key=lambda kept: kept.used)
        total = sum(kept.size for kept in found)
        for kept in found:
            if total <= self.budget:
                return
            with _locked(self.folder / f"{kept.key}.lock") as ours:
                if ours:
                    shutil.rmtree(self._place(kept.key), ignore_errors=True)
                    kept.record.unlink(missing_ok=True)
                    total -= kept.size

    def _all(self) -> Iterator[_Kept]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                key, _, rest = entry.name.partition(".")
                size, _, kind = rest.partition(".")
                with suppress(OSError):  # another process was faster
                    if kind == "size":
                        yield _Kept(key, int(size), entry.stat().st_mtime, Path(entry.path))


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether nobody else has it; it ends with the process, however that ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


def _size(place: Path) -> int:
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total
