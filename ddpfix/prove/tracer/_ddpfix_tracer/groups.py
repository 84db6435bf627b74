"""Process groups over gloo do no harm at the end of a process.

A worker thread of gloo lets the tensor of a finished collective go after whoever waited for it has gone on, and needs the
interpreter's lock for that. NCCL has no such threads, so what comes of it would be told of a program that has no fault:

- Where the interpreter is already on its way out, Python up to 3.13 ends the thread that asks for its lock by `pthread_exit`,
  which C++ does not let pass through a destructor: SIGABRT behind the program's last line, "terminate called without an active
  exception" (torch 2.13.0, on busy machines; the stack is runLoop, decref_pyobject, PyEval_RestoreThread, pthread_exit). So the
  end waits until the threads have nothing left to let go.
- Where a group's last holder is a DistributedDataParallel that outlives `destroy_process_group`, its destructor joins the threads
  while it holds that lock: a hang at exit (torch 2.13.0, a quarter of the runs of a small Trainer program, with or without the
  tracer). So groups are kept to the end of the process.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time
from typing import Any

_WORKER = "pt_gloo_runloop"  # the name of such a thread, since torch 2.5
_PATIENCE = 3.0  # seconds; a thread that is in a collective whose peer never comes is asleep, and not waited for
_LOOK = 0.01

_kept: set[int] = set()


def keep(group: Any) -> None:
    """Never let the group's destructor run."""
    if group is not None and type(group).__name__ == "ProcessGroup" and id(group) not in _kept:
        _kept.add(id(group))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def settle_at_exit() -> None:
    """Call `settle` behind all that the program does at its end: what is registered first is called last."""
    atexit.unregister(settle)
    atexit.register(settle)


def settle() -> None:
    """Wait until the worker threads are asleep, and have not been awake between three looks."""
    until = time.monotonic() + (_PATIENCE if _kept else 0)
    before: dict[str, Any] | None = None
    quiet = 0
    while quiet < 2 and time.monotonic() < until:
        time.sleep(_LOOK)  # the lock is free meanwhile
        now = _workers()
        quiet = quiet + 1 if now == before and all(state == "S" for state, _ in now.values()) else 0
        before = now


def _workers() -> dict[str, Any]:
    """(state, number of context switches) of each worker thread, by its number; {} where nobody says.

    Of a torch that gives its threads no names, the states of all other threads.
    """
    own = str(os.getpid())
    try:
        threads = [n for n in os.listdir("/proc/self/task") if n != own]
        named = [n for n in threads if _read(n, "comm").strip() == _WORKER]
        return {n: _look(n, switches=bool(named)) for n in named or threads}
    except OSError:  # no Linux, or a thread that has just ended
        return {}


def _look(thread: str, *, switches: bool) -> tuple[str, int]:
    rows = dict(row.split(":", 1) for row in _read(thread, "status").splitlines() if ":" in row)
    count = sum(int(v) for k, v in rows.items() if k.endswith("ctxt_switches")) if switches else 0
    return rows["State"].strip()[:1], count


def _read(thread: str, name: str) -> str:
    with open("/proc/self/task/%s/%s" % (thread, name)) as file:
        return file.read()
