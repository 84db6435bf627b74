"""Whole processes, measured by the kernel's own accounting: user and system time, wall time, peak memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of processor and of wall time, and megabytes at the peak of the largest process."""

    cpu: float
    wall: float
    peak: float


def once(command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> Cost:
    """Run a command; its output is thrown away and its exit status is not judged."""
    started = time.perf_counter()
    # a program that is installed has its bytecode: with this variable it would be compiled anew in each run
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**around, **(env or {})}
    )
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def paired(commands: Sequence[Sequence[str]], folder: Path, *, runs: int = 5) -> list[Cost]:
    """The medians of several commands, run in turn so that the machine's moods meet all of them; one warm-up each."""
    rows: list[list[Cost]] = [[] for _ in commands]
    for turn in range(runs + 1):
        for row, command in zip(rows, commands, strict=True):
            cost = once(command, folder)
            if turn:
                row.append(cost)
    return [
        Cost(*(statistics.median(getattr(c, name) for c in row) for name in ("cpu", "wall", "peak"))) for row in rows
    ]
