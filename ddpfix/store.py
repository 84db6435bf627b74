"""The judgement of each file, kept in the user's cache folder with what it rests on.

After an edit only those files are judged again of which a trace no longer holds (`codemods/store/trace.py`). Files are told apart
by their contents; size, time and inode only save reading those that nobody touched (git's rule for "racy" entries). A stored
file that is damaged, or of another version, is as if it was not there.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from codemods.api.findings import Finding
from codemods.runtime.record import field, record, replace
from codemods.store.project import Project
from codemods.store.trace import Change, Trace
from ddpfix import answers, cache
from ddpfix.results import Failure, Judged

Stamp = tuple[int, int, int, int]  # size, both times, inode
GATE = ""  # the root of what decides which codemods are asked about a file at all
MOST_CHANGED = 50  # files; what a switch to another branch reaches is dearer to find out than to judge again
_GONE = b"-"  # in the place of a digest: there are no bytes


class Reader:
    """`read`, with a digest of all that it has given; what is read twice and differs counts as changed next time."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self.anew = read
        self.digests: dict[str, bytes] = {}

    def __call__(self, path: str) -> bytes | None:
        data = self.anew(path)
        if path not in self.digests:
            self.digests[path] = digest(data)
        return data


def digest(data: bytes | None) -> bytes:
    import hashlib  # with OpenSSL: 5 ms

    return _GONE if data is None else hashlib.sha256(data).digest()[:16]


@record
class Kept:
    """What is known of a project. taken: when the stamps were; of a file that nobody read there is no digest.

    ranks: the names that the gate takes for the rank. looked: the files that the gate was asked about; those that passed are
    among judged.
    """

    stamps: Mapping[str, Stamp | None] = field(default_factory=dict)
    taken: int = 0
    digests: Mapping[str, bytes] = field(default_factory=dict)
    ranks: frozenset[str] = frozenset()
    looked: frozenset[str] = frozenset()
    judged: Mapping[str, Judged] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)

    def gave_nothing(self, path: str) -> bool:
        return self.digests.get(path) == _GONE


def stamps(root: Path, files: Collection[str]) -> dict[str, Stamp | None]:
    """To be taken before the files are read: what changes later is then seen to have changed."""
    base, out = os.fspath(root), dict[str, Stamp | None]()
    for path in files:
        try:
            about = os.stat(f"{base}/{path}", follow_symlinks=False)
        except OSError:
            out[path] = None
            continue
        out[path] = about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino
    return out


def still_true(kept: Kept, now: Kept, read: Callable[[str], bytes | None], project: Project) -> Kept:
    """What of it holds for the files as they are now. now: their stamps; project: they are its files."""
    changed: dict[str, bytes | None] = {}
    for path in now.stamps.keys() | kept.stamps.keys():
        if path in now.stamps and path in kept.stamps:
            if path not in kept.digests or _untouched(kept.stamps[path], now.stamps[path], kept.taken):
                continue
            data = read(path)
            if digest(data) != kept.digests[path]:
                changed[path] = data
        else:
            changed[path] = read(path) if path in now.stamps else None
    if len(changed) > MOST_CHANGED:
        return now
    if not changed:
        return replace(kept, stamps=now.stamps, taken=now.taken)
    broken = kept.trace.broken_by(Change(changed, None if now.stamps.keys() == kept.stamps.keys() else project))
    judged = {p: j for p, j in kept.judged.items() if p not in broken and p not in changed}
    looked = frozenset(p for p in kept.looked if p not in changed and (p in judged or p not in kept.judged))
    trace = kept.trace.kept({*judged, *({GATE} - broken)})
    digests = {p: d for p, d in kept.digests.items() if p not in changed and p in now.stamps}
    return Kept(now.stamps, now.taken, digests, kept.ranks, looked, judged, trace)


def _untouched(before: Stamp | None, now: Stamp | None, taken: int) -> bool:
    """True where the file cannot have changed; the time of the last change cannot be set back by a tool."""
    return before == now and (now is None or max(now[1], now[2]) <= taken - answers.RACY)


def begun(root: Path, files: Collection[str]) -> Kept:
    """A state of the files, of which nothing is known yet."""
    taken = time.time_ns()
    return Kept(stamps(root, files), taken)


def load(name: str) -> Kept | None:
    from ddpfix.unpickling import Restricted

    try:
        stored = marshal.loads(cache.read(f"{name}.judgements"))
        seen, taken, digests, ranks, looked, questions, sources, roots, found = stored
        judged = Restricted(io.BytesIO(found)).load()
        if not all(type(j) is Judged and _is_whole(j) for j in judged.values()):
            return None
        return Kept(seen, taken, digests, ranks, looked, judged, Trace(questions, sources, roots))
    except Exception:  # whatever is wrong with a cache file, the answer is to work it out again
        return None


def _is_whole(judged: Judged) -> bool:
    kinds = {*map(type, judged.findings)} <= {Finding} and {*map(type, judged.broken)} <= {Failure}
    return kinds and type(judged.parsed) is type(judged.left_out) is int


def save(name: str, kept: Kept) -> None:
    """A store that cannot be written is no reason to fail."""
    import pickle

    trace = kept.trace
    found = pickle.dumps(dict(kept.judged), protocol=5)
    rows = (dict(kept.stamps), kept.taken, dict(kept.digests), kept.ranks, kept.looked)
    with contextlib.suppress(ValueError):
        data = marshal.dumps((*rows, dict(trace.questions), dict(trace.sources), dict(trace.roots), found))
        cache.write(f"{name}.judgements", data)
