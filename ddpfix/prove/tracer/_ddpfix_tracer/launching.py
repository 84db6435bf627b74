"""A program that starts its ranks as other programs: `subprocess.run(["torchrun", …])`, `os.system`, a Popen for each rank.

What a process starts is told so by its environment, through launchers and shells. A process that finds itself a rank there
(RANK, or a process group that it asks for) becomes one where the program is run once for the ranks that it starts (`starting`).
Where it is run as several ranks from outside, that is told, and the run is over (`processes`); but one that has the number and
the meeting place of the rank that has started it stands for that rank.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
from typing import Any

from _ddpfix_tracer import call_sites, counted_devices, processes, recorder, starting, watched

_NAME = "DDPFIX_TRACE_LAUNCH"
_given: dict[str, Any] | None = None  # what this process was told by its environment, and tells those that it starts
_outside = False  # a rank that was started from outside


def begin(told: str) -> None:
    """In a process that was told; one that is a rank by its environment becomes it now."""
    global _given
    if not told:
        return
    _given = json.loads(told)
    size, rank = _number("WORLD_SIZE"), _number("RANK")
    origin = _given.get("origin")
    if rank is None or size == 1:
        return
    if origin is None:
        asks_for_a_group(size, rank)
    elif not _stands_for(origin, rank):
        try:
            processes.told_by(origin, size)
        except SystemExit:  # it would be an error of Python's start here
            os._exit(1)


def from_outside() -> None:
    """This process is one of several ranks that were started from outside."""
    global _outside
    _outside = True


def patch(module: Any) -> None:
    """Watch subprocess.Popen: what it starts is told, and how it ended is left for whoever watches."""
    init, handle = module.Popen.__init__, module.Popen._handle_exitstatus

    @functools.wraps(init)
    def started(self: Any, args: Any, *more: Any, **kwargs: Any) -> None:
        with _telling() as ours:
            if kwargs.get("env") is not None:
                env = counted_devices.as_it_is(kwargs["env"])
                kwargs = {**kwargs, "env": {**env, **{name: os.environ[name] for name in ours}}}
            init(self, args, *more, **kwargs)

    @functools.wraps(handle)
    def ended(self: Any, *args: Any, **kwargs: Any) -> None:
        handle(self, *args, **kwargs)
        run = _given or starting.started_run()
        if run is not None and "origin" not in run and self.returncode is not None:
            recorder.leave(run["folder"], "ended-%d" % self.pid, self.returncode)

    module.Popen.__init__, module.Popen._handle_exitstatus = started, ended


def watch_shell() -> None:
    """Watch os.system."""
    system = os.system

    @functools.wraps(system)
    def call(command: Any) -> int:
        with _telling():
            return system(command)

    os.system = call


@contextlib.contextmanager
def _telling() -> Any:
    """What is started within is told, where there is something to tell; the names of the variables that tell it."""
    told = _what_to_tell()
    if told is None:
        yield ()
        return
    with starting.traced(swap=told["swap"], processes=told["processes"], path=told["path"]) as ours:
        os.environ[_NAME] = json.dumps(told)
        try:
            yield (*ours, _NAME, *(name for name in ("DDPFIX_RUN",) if name in os.environ))
        finally:
            del os.environ[_NAME]


def _what_to_tell() -> dict[str, Any] | None:
    if _given is not None:
        return _given
    if starting.in_group():
        return None
    at, _ = call_sites.user_frame()
    if (run := starting.started_run()) is not None:
        return {**run, "at": at}
    if not (_outside and at and recorder.recording() and watched.swaps()):
        return None
    here = {"folder": recorder.where(), "rank": recorder.rank_here, "at": at, "pid": os.getpid(), "port": _number("MASTER_PORT")}
    more = {"swap": True, "processes": watched.processes(), "path": os.environ.get("PYTHONPATH", ""), "steps": watched.steps()}
    return {**more, "origin": here}


def asks_for_a_group(size: int | None, rank: int | None) -> None:
    """This process asks to be number `rank` of a group of `size`: it is a rank that the program starts itself."""
    global _given
    told, _given = _given, None
    if told is None or size == 1:
        _given = told
        return
    if origin := told.get("origin"):
        if _stands_for(origin, rank):
            recorder.open_in(origin["folder"], origin["rank"])
            watched.begin(steps=told["steps"], swap=True, processes=told["processes"])
        else:
            processes.told_by(origin, size)
    elif size is not None and size == told["processes"] and rank is not None and rank < size:
        starting.become(told, rank)
        atexit.register(_ended, told["folder"], rank)
    elif size is not None and size != told["processes"]:
        recorder.open_in(told["folder"], 0)
        recorder.write("spawns", at=told["at"], asked=size)
        os._exit(1)


def _stands_for(origin: dict[str, Any], rank: int | None) -> bool:
    """True for one that has the number and the meeting place of the rank that has started it."""
    return bool(rank == origin["rank"] and _number("MASTER_PORT") == origin["port"])


def _ended(folder: str, rank: int) -> None:
    """How far that is known inside: who has started it says it better, where that is no shell."""
    recorder.leave(folder, "status-%d" % rank, 1 if isinstance(getattr(sys, "last_value", None), Exception) else 0)


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None
