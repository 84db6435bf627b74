"""A big repository's files shared out over forked processes: each judges some of them and hands back what it found.

Trees are never sent: a worker is forked where everything is read and nothing is parsed, so it begins with the bytes in memory
(2 ms a worker), and what comes back are findings. Only where `fork` is safe: on Linux, in a process that has one thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
WORTH_A_WORKER = 3_000_000  # bytes to judge; files that several of them follow into are parsed by each


def parts(paths: Sequence[str], size: Callable[[str], int], *, most: int | None = None) -> list[list[str]]:
    """The paths in runs of about the same number of bytes, in order: one for each process that is worth its start.

    most: processes; those that this one may run on, if not given.
    """
    if not sys.platform.startswith("linux"):
        return [list(paths)]
    sizes = [size(path) for path in paths]
    count = max(1, min(most or len(os.sched_getaffinity(0)), sum(sizes) // WORTH_A_WORKER))
    share, held = sum(sizes) / count, 0
    out: list[list[str]] = [[]]
    for path, weight in zip(paths, sizes, strict=True):
        if held + weight / 2 > share * len(out) and len(out) < count:
            out.append([])
        out[-1].append(path)
        held += weight
    return out


def judged(work: Sequence[Sequence[str]], judge: Callable[[Sequence[str]], T]) -> list[T]:
    """`judge` of each part, in order: of the first one here, of each other one in a process of its own.

    A worker that fails, for whatever reason, is nothing that a user sees: its part is judged here.
    """
    if len(work) == 1:
        return [judge(work[0])]
    import pickle

    started = [_start(part, judge) for part in work[1:]]
    out = [judge(work[0])]
    for part, (child, answer) in zip(work[1:], started, strict=True):
        with os.fdopen(answer, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        out.append(pickle.loads(data) if status == 0 and data else judge(part))
    return out


def _start(part: Sequence[str], judge: Callable[[Sequence[str]], T]) -> tuple[int, int]:
    """(process, the pipe that its answer comes through)."""
    import pickle

    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(judge(part), pipe, pickle.HIGHEST_PROTOCOL)
        status = 0
    except BaseException:
        pass
    finally:
        os._exit(status)
