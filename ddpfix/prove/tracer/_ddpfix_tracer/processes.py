"""A program that starts its ranks by `multiprocessing.Process`, one by one.

Whether such a process is a rank shows only where it asks for a process group. Where the program is run as several ranks from
outside, that is told, and the run is over. Where it is run once for the ranks that it starts (`starting`), the first of its
processes, as many as there are ranks, are these.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from typing import Any

from _ddpfix_tracer import call_sites, recorder, starting, watched

_begun = 0  # ranks that this process has started
_origin: dict[str, Any] | None = None  # of a process that a rank's own code has started


def patch(module: Any) -> None:
    """Watch multiprocessing.process.BaseProcess, started by the user's own code before it is in a group."""
    start, join = module.BaseProcess.start, module.BaseProcess.join

    @functools.wraps(start)
    def started(self: Any) -> Any:
        frame = sys._getframe(1)
        if not call_sites.is_users(frame.f_code.co_filename) or starting.in_group() or getattr(self, "_target", None) is None:
            return start(self)
        with _prepared(self, frame):
            return start(self)

    @functools.wraps(join)
    def joined(self: Any, timeout: Any = None) -> Any:
        out = join(self, timeout)
        place = getattr(self, "_ddpfix_rank", None)
        if place and self.exitcode is not None:
            recorder.leave(place[0], "exit-%d" % place[1], self.exitcode)
        return out

    module.BaseProcess.start, module.BaseProcess.join = started, joined


def _prepared(process: Any, frame: Any) -> Any:
    """Make `process` a rank, or let it tell that it is one; the context to start it in."""
    global _begun
    run = starting.started_run()
    if run is not None and _begun < run["processes"]:
        process._ddpfix_rank = (run["folder"], _begun)
        process._target = Rank(process._target, run, _begun)
        _begun += 1
        return starting.traced(swap=run["swap"], processes=run["processes"], path=run["path"])
    if recorder.recording() and watched.swaps():
        at, _ = call_sites.user_frame()
        origin = {"folder": recorder.where(), "rank": recorder.rank_here, "at": at, "pid": os.getpid()}
        process._target = Unknown(process._target, origin)
        return starting.traced(swap=True, processes=watched.processes(), path=os.environ.get("PYTHONPATH", ""))
    return contextlib.nullcontext()


class Rank(starting.Worker):
    """The user's function as the rank of this number; it is sent to the new process."""

    def __init__(self, fn: Any, run: dict[str, Any], rank: int) -> None:
        super().__init__(fn, run)
        self.rank = rank

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.as_rank(self.rank, *args, **kwargs)


class Unknown:
    """The user's function in a process that may be a rank of theirs."""

    def __init__(self, fn: Any, origin: dict[str, Any]) -> None:
        self.fn, self.origin = fn, origin

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        global _origin
        starting.forget()
        _origin = self.origin
        self.fn(*args, **kwargs)


def asks_for_a_group(size: int | None, _: int | None) -> None:
    """This process asks to be in a group of `size`."""
    if _origin is not None:
        told_by(_origin, size)


def told_by(origin: dict[str, Any], size: int | None) -> None:
    """Tell the rank that has started this process of the group that it asks for; that rank is ended, and so is this process."""
    recorder.tell(origin["folder"], origin["rank"], "spawns", at=origin["at"], asked=size)
    os.kill(origin["pid"], signal.SIGTERM)
    raise SystemExit("ddpfix: the program starts its ranks itself")
