"""Frames of a traceback found again in a repository, although the log was made on another machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ddpfix.diagnosis.cause import Diagnosis
from ddpfix.diagnosis.tracebacks import Crash, Frame

_INSTALLED = ("site-packages", "dist-packages", "lib/python3", "<frozen ", "<string>")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the repository that a rank was at. inner: it is the last one of the repository in its traceback."""

    path: str
    line: int
    function: str
    rank: int | None
    inner: bool = False


def places(diagnosis: Diagnosis, files: Iterable[str]) -> tuple[Place, ...]:
    """The lines of the repository in the tracebacks of the failure: of the first rank, or of every rank that waited."""
    known = frozenset(files)
    crashes = diagnosis.waiting or ((diagnosis.first,) if diagnosis.first is not None else ())
    return tuple(place for crash in crashes for place in in_repository(crash, known))


def in_repository(crash: Crash, files: frozenset[str]) -> tuple[Place, ...]:
    """The frames of one traceback whose files lie in the repository, outermost first."""
    found = [(path, frame) for frame in crash.frames if (path := file_of(frame, files))]
    last = len(found) - 1
    return tuple(Place(path, f.line, f.function, crash.rank, i == last) for i, (path, f) in enumerate(found))


def file_of(frame: Frame, files: frozenset[str]) -> str:
    """The file of the repository that ends like the frame's path; "" where none does, or several end alike."""
    path = frame.path.replace("\\", "/")
    if any(part in path for part in _INSTALLED):
        return ""
    parts = path.lstrip("/").split("/")
    for start in range(len(parts)):
        if (tail := "/".join(parts[start:])) in files:
            return tail
    name = [f for f in files if f.rpartition("/")[2] == parts[-1]]
    return name[0] if len(name) == 1 else ""
