"""What runs inside of a rank: standard library only, any Python from 3.8, never an exception into the user's program."""

from __future__ import annotations

import os

from _ddpfix_tracer import importing, launching, processes, recorder, starting, watched


def start() -> None:
    """Begin to record, where the environment asks for it, and watch the imports."""
    own = {
        "torch.multiprocessing.spawn": starting.patch,
        "multiprocessing.process": processes.patch,
        "subprocess": launching.patch,
    }
    importing.watch({**watched.PATCHES, **own})
    launching.watch_shell()
    watched.before_a_group += [processes.asks_for_a_group, launching.asks_for_a_group]
    begin()


def begin() -> None:
    """Open this rank's files; what the environment said of them is taken out of it.

    Or make ready to start the ranks (DDPFIX_TRACE_SPAWNS), or to become one (DDPFIX_TRACE_WORKER, DDPFIX_TRACE_LAUNCH).
    """
    folder = os.environ.pop("DDPFIX_TRACE_FOLDER", "")
    rank = int(os.environ.pop("DDPFIX_TRACE_RANK", "0"))
    steps = int(os.environ.pop("DDPFIX_TRACE_STEPS", "0"))
    swap = os.environ.pop("DDPFIX_TRACE_SWAP", "") == "1"
    processes = int(os.environ.pop("DDPFIX_TRACE_PROCESSES", "") or os.environ.get("WORLD_SIZE") or 1)
    spawns = os.environ.pop("DDPFIX_TRACE_SPAWNS", "")
    worker = os.environ.pop("DDPFIX_TRACE_WORKER", "")
    told = os.environ.pop("DDPFIX_TRACE_LAUNCH", "")
    if folder:
        recorder.open_in(folder, rank)
        watched.begin(steps=steps, swap=swap, processes=processes)
        launching.from_outside()
    elif spawns:
        starting.begin(spawns, steps=steps, swap=swap, processes=processes)
    elif worker:
        watched.run_on(swap=swap, processes=processes)
        launching.begin(told)
