"""A program that starts its ranks itself: one process is started here, and what it spawns are the ranks of the run.

The tracer in that process starts each worker with our folder in its environment (`_ddpfix_tracer.starting`). There a rank finds
the pipes that it writes into, and leaves its process number and how it ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LEFT = -signal.SIGTERM  # torch's spawn ends the others so, when one has failed


class Parent(Protocol):
    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class SpawnedRank:
    """A rank that the process `parent` starts, known by what it leaves in the folder of the run."""

    folder: Path
    rank: int
    parent: Parent

    @property
    def pid(self) -> int:
        """Its own once it runs; until then the one that will start it."""
        return self._number("pid") or self.parent.pid

    def poll(self) -> int | None:
        """Its exit status, None while it lives or may still come; LEFT where it was ended and nobody says how.

        One whose function has returned has not ended: what crashes behind it is the program's own.
        """
        own, pid = self._number("status"), self._number("pid")
        if own:
            return own
        said = self._number("exit")  # by multiprocessing, else by subprocess
        if said is None and pid:
            said = self._number("ended", pid)
        if said is None:
            said = _of_zombie(pid)
        if said is None:
            if _alive(pid) or (own is None and self.parent.poll() is None):
                return None
            return own if own is not None else LEFT if pid else 0
        return own if own is not None and said == LEFT else said

    def _number(self, what: str, of: int = -1) -> int | None:
        try:
            return int((self.folder / f"{what}-{of if of >= 0 else self.rank}").read_text())
        except (OSError, ValueError):
            return None


def _of_zombie(pid: int | None) -> int | None:
    """The exit status of a process that has ended and that its parent has not yet asked for, which may wait for other things.

    The last field of its stat is what wait would say: a signal, or the status in the next byte (proc(5)).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split() if pid else []
        said = int(fields[-1]) if fields and fields[0] == b"Z" else None
    except (OSError, ValueError):
        return None
    return said if said is None else -(said & 0x7F) if said & 0x7F else said >> 8


def _alive(pid: int | None) -> bool:
    try:
        return pid is not None and Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def pipes(folder: Path, rank: int) -> tuple[int, int]:
    """The ends to read of what a rank will write to its stdout and stderr; it opens the others itself."""
    out = []
    for name in ("stdout", "stderr"):
        path = folder / f"{name}-{rank}"
        os.mkfifo(path, 0o600)
        # for writing, too: without a writer, a pipe of Linux is at its end before the rank has come (fifo(7))
        out.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    return out[0], out[1]


def environment(env: Mapping[str, str], traced: Mapping[str, str], folder: Path, processes: int) -> dict[str, str]:
    """Of the process that spawns. traced: what a rank is given for the tracer; no launcher has set anything."""
    out = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **env, **traced, "CUDA_VISIBLE_DEVICES": ""}
    out.pop("DDPFIX_TRACE_FOLDER", None)
    if Path("/sys/class/net/lo").exists():
        out.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return out | {"DDPFIX_TRACE_SPAWNS": str(folder), "DDPFIX_TRACE_PROCESSES": str(processes)}
