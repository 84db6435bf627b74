"""Process groups over gloo are kept to the end of the process.

Where a group's last holder is a DistributedDataParallel that outlives `destroy_process_group`, its destructor joins gloo's
worker threads while it holds the interpreter's lock, and a worker that still has to let a tensor go waits for that lock:
seen with torch 2.13.0 in a quarter of the runs of a small Trainer program, with or without the tracer, as a hang at exit.
NCCL has no such threads, so it would be told of a program that has no fault.
"""

from __future__ import annotations

import ctypes
from typing import Any

_kept: set[int] = set()


def keep(group: Any) -> None:
    """Never let the group's destructor run."""
    if group is not None and type(group).__name__ == "ProcessGroup" and id(group) not in _kept:
        _kept.add(id(group))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
