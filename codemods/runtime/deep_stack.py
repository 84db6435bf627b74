"""Room for deep work: LibCST's parser recurses in native code, its visitors and its code generator in Python, and the analyses go
from function to function. With no limit of their own, what they find does not depend on the file that they begin with.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

MIB = 1024 * 1024
# A thread's stack can be chosen, the main one cannot. The pages are only taken when they are used.
STACKS = (512 * MIB, 128 * MIB, 32 * MIB)
_here = threading.local()
FRAMES = 60_000  # about twenty frames for each level of the deepest tree that Python's own parser hands out


def with_deep_stack(work: Callable[[], R]) -> R:
    """Run `work` in a thread with a deep stack and a high recursion limit; its exception is raised here.

    What runs in such a thread already runs on in it.
    """
    if getattr(_here, "is_deep", False):
        return work()
    outcome: list[R] = []
    failure: list[BaseException] = []

    def run() -> None:
        _here.is_deep = True
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    limit = sys.getrecursionlimit()
    try:
        _started(run).join()
    finally:
        sys.setrecursionlimit(limit)
    if failure:
        raise failure[0]
    return outcome[0]


def _started(run: Callable[[], None]) -> threading.Thread:
    """The thread, with the largest stack there is room for and as many frames as that holds."""
    before, limit = threading.stack_size(), sys.getrecursionlimit()
    try:
        for size in STACKS:
            threading.stack_size(size)
            sys.setrecursionlimit(max(limit, FRAMES * size // STACKS[0]))
            thread = threading.Thread(target=run, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no memory for a stack of this size
                continue
            return thread
        raise MemoryError("no memory for the stack of a thread")
    finally:
        threading.stack_size(before)
