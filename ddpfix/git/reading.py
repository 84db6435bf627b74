"""Committed files of a clone that may lack them: few requests to the server, few processes, a bounded share of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ddpfix.git.snapshots import Blob

FEW = 3  # files that are fetched one by one; a search through all that a repository holds asks for hundreds
HELD = 64 * 1024 * 1024  # bytes of the files `soon` that are held; the others are read one by one


class Store(Protocol):
    """A clone: what it fetches and gives."""

    def fetch(self, shas: Iterable[str]) -> None: ...

    def sizes(self, shas: Iterable[str]) -> dict[str, int]: ...

    def blobs(self, shas: Iterable[str], largest: int) -> dict[str, bytes | None]: ...


class Reader:
    """Bytes of a path, None for what is not committed or has more than `largest` bytes. Raises GitRefusal, OverLimit.

    at_once: fetched and held from the start. soon: fetched with them, held as soon as one of them is asked for. rest: fetched
    together as soon as a few of them were asked for, since a server answers one request in the time of a thousand files.
    """

    def __init__(
        self,
        store: Store,
        blobs: Mapping[str, Blob],
        at_once: Iterable[str],
        *,
        largest: int,
        soon: Iterable[str],
        rest: Iterable[str],
    ) -> None:
        self._store, self._blobs, self._largest = store, blobs, largest
        wanted = [blobs[path].sha for path in at_once if path in blobs]
        self._soon = {blobs[path].sha for path in soon if path in blobs}
        self._rest = [blobs[path].sha for path in rest if path in blobs]
        store.fetch((*wanted, *self._soon))
        self._kept = store.blobs(wanted, largest)
        self._fetched = {*wanted, *self._soon}
        self._alone = 0

    def __call__(self, path: str) -> bytes | None:
        blob = self._blobs.get(path)
        if blob is None:
            return None
        if blob.sha not in self._kept:
            self._load(blob.sha)
        return self._kept[blob.sha]

    def _load(self, sha: str) -> None:
        if sha in self._soon:
            self._hold_soon()
        elif sha not in self._fetched:
            self._alone += 1
            wanted = [sha] if self._alone <= FEW else [sha, *self._rest]
            self._store.fetch(wanted)
            self._fetched.update(wanted)
        if sha not in self._kept:
            self._kept |= self._store.blobs([sha], self._largest)

    def _hold_soon(self) -> None:
        """The small ones first, so that few are left to be read one by one."""
        sizes = self._store.sizes(self._soon - self._kept.keys())
        room, small = HELD, []
        for sha, size in sorted(sizes.items(), key=lambda row: row[1]):
            if size <= self._largest and (room := room - size) < 0:
                break
            small.append(sha)
        self._soon = set()
        self._kept |= self._store.blobs(small, self._largest)
