"""A program that starts its ranks itself, by `torch.multiprocessing.spawn` (by `Process`: see `processes`).

In one of several ranks that are started from outside it is told, and the rank ended: it would start ranks of ranks. In a process
of its own (`DDPFIX_TRACE_SPAWNS`), the workers that it starts are the ranks: each records into the same folder, writes its output
into the pipes that lie there, and says how it ended.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from _ddpfix_tracer import call_sites, failing, recorder, watched

_run: dict[str, Any] | None = None  # of the process whose workers are the ranks; None everywhere else


def begin(folder: str, *, steps: int, swap: bool, processes: int) -> None:
    """From now on, what this process spawns are the ranks of the run in `folder`."""
    global _run
    path = os.environ.get("DDPFIX_TRACE_PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # the first: as the user has set it
    _run = {"folder": folder, "steps": steps, "swap": swap, "processes": processes, "path": path}
    watched.run_on(swap=swap, processes=processes)


def patch(module: Any) -> None:
    """Watch torch.multiprocessing.spawn.spawn, called by the user's own code before it is in a group."""
    spawn = module.spawn

    @functools.wraps(spawn)
    def call(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, *more: Any, **kwargs: Any) -> Any:
        def start(fn: Any, *, join: bool) -> Any:
            return spawn(fn, args, nprocs, join, *more, **kwargs)

        at, via = call_sites.user_frame()
        if at is None or via or in_group():
            return start(fn, join=join)
        if _run is not None:
            return _started(start, fn, at, nprocs, join)
        if recorder.recording() and watched.swaps():
            recorder.write("spawns", at=at, asked=nprocs)
            raise SystemExit("ddpfix: the program starts its ranks itself")
        return start(fn, join=join)

    module.spawn = call


def in_group() -> bool:
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and dist.is_initialized()


# The process that spawns


def started_run() -> dict[str, Any] | None:
    """What the ranks that this process starts are told; None where it starts none."""
    return _run


def _started(start: Callable[..., Any], fn: Any, at: Any, nprocs: int, join: bool) -> Any:
    """Start the workers as ranks; wait for them, where the program does, and say how they ended."""
    global _run
    run, _run = _run, None
    assert run is not None
    if nprocs != run["processes"]:
        recorder.open_in(run["folder"], 0)
        recorder.write("spawns", at=at, asked=nprocs)
        raise SystemExit("ddpfix: the program starts another number of ranks")
    with traced(swap=run["swap"], processes=nprocs, path=run["path"]):
        context = start(Worker(fn, run), join=False)
    if not join:
        return context
    try:
        while not context.join():
            pass
    finally:
        for rank, process in enumerate(context.processes):
            if process.exitcode is not None:
                recorder.leave(run["folder"], "exit-%d" % rank, process.exitcode)
    return None


@contextlib.contextmanager
def traced(*, swap: bool, processes: int, path: str) -> Iterator[tuple[str, ...]]:
    """What is started within has the tracer on its path, and CUDA answered; the names of the variables that are set for it."""
    ours = {"DDPFIX_TRACE_WORKER": "1", "DDPFIX_TRACE_SWAP": "1" if swap else "",
            "DDPFIX_TRACE_PROCESSES": str(processes), "DDPFIX_TRACE_PYTHONPATH": path,
            "PYTHONPATH": os.pathsep.join(p for p in (os.path.dirname(call_sites.OURS[0]), path) if p)}  # fmt: skip
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield tuple(ours)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def forget() -> None:
    """In a process that was forked: what `traced` has set for it, and that its parent starts ranks."""
    global _run
    _run = None
    path = os.environ.pop("DDPFIX_TRACE_PYTHONPATH", None)
    for name in ("DDPFIX_TRACE_WORKER", "DDPFIX_TRACE_SWAP", "DDPFIX_TRACE_PROCESSES"):
        os.environ.pop(name, None)
    if path is not None:
        os.environ["PYTHONPATH"] = path
        if not path:
            del os.environ["PYTHONPATH"]


# A rank


def become(run: dict[str, Any], rank: int) -> None:
    """Make this process the rank of this number: its files, its pipes, its number."""
    folder = run["folder"]
    for fd, name in ((1, "stdout"), (2, "stderr")):
        pipe = os.open(os.path.join(folder, "%s-%d" % (name, rank)), os.O_WRONLY)
        os.dup2(pipe, fd)
        os.close(pipe)
    recorder.open_in(folder, rank)
    watched.begin(steps=run["steps"], swap=run["swap"], processes=run["processes"])
    recorder.write("note", text="the program starts its ranks itself")
    recorder.leave(folder, "pid-%d" % rank, os.getpid())


class Worker:
    """The user's function in a rank of its own; it is sent to the new process."""

    def __init__(self, fn: Any, run: dict[str, Any]) -> None:
        self.fn, self.run = fn, run

    def __call__(self, rank: int, *args: Any) -> None:
        self.as_rank(rank, rank, *args)

    def as_rank(self, rank: int, *args: Any, **kwargs: Any) -> None:
        forget()
        become(self.run, rank)
        status = 1
        try:
            self.fn(*args, **kwargs)
            status = 0
        except SystemExit as asked:
            status = asked.code if isinstance(asked.code, int) else int(bool(asked.code))
            raise
        except BaseException as error:
            failing.tell(error)
            traceback.print_exc()  # torch hands it to the process that spawned, which is not the rank
            raise
        finally:
            atexit.unregister(watched.end)
            watched.end()
            recorder.leave(self.run["folder"], "status-%d" % rank, status)
