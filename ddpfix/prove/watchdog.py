"""Told from outside: is a set of ranks at work, or does it wait for what cannot come?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ddpfix.prove.traces import Page

QUIET = 2.0  # seconds without CPU time or a new collective, all live ranks in a collective
LONG_QUIET = 10.0  # the same where one of them is only inside a wrapped model's forward, or where CPU time says nothing


@dataclass(frozen=True, slots=True)
class Pulse:
    """A rank at one moment. ticks: CPU time used so far, None where it cannot be read; runnable: it wants the CPU now."""

    page: Page
    ticks: int | None
    runnable: bool


def pulse(pid: int, page: Page) -> Pulse:
    """The pulse of a live process, by /proc (proc(5)); where there is none, of its counters alone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return Pulse(page, None, False)
    return Pulse(page, int(fields[11]) + int(fields[12]), fields[0] in (b"R", b"D"))


def memory(pid: int) -> int:
    """Bytes of memory a process holds alone; 0 where that cannot be read."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, *_ = (int(n) for n in file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


class Watchdog:
    """Fed with the pulses of the live ranks, says when nothing can come any more.

    All live ranks wait in a collective, none uses the CPU, none issues anything: ranks that wait for each other in different
    places, or for one that has ended. Time alone says nothing: a slow rank uses the CPU, a sleeping one is in no collective.
    A start of the process group asks again and again whether the others have come, which takes CPU time: after a rank has
    failed, only what is issued counts.
    """

    def __init__(self) -> None:
        self._last: list[Pulse] = []
        self._since = 0.0

    def hangs(self, now: float, pulses: Sequence[Pulse], *, failed: bool = False) -> bool:
        """failed: a rank has ended by an error of its own, for which no live one can wait in vain for long."""
        if failed and all(p.page.waiting for p in pulses):
            pulses = [Pulse(p.page, None, False) for p in pulses]
        quiet = now - self._since
        moved = len(pulses) != len(self._last) or any(_moved(a, b, quiet) for a, b in zip(self._last, pulses, strict=True))
        if moved:
            self._last, self._since = list(pulses), now
            return False
        if not pulses or not any(p.page.waiting for p in pulses):
            return False
        if not all(p.page.waiting or p.page.forwards for p in pulses):
            return False
        sure = all(p.page.waiting and p.ticks is not None for p in pulses)
        return now - self._since >= (QUIET if sure else LONG_QUIET)


def _moved(before: Pulse, now: Pulse, seconds: float) -> bool:
    if before.page != now.page or now.runnable:
        return True
    # The housekeeping threads of a process group use a tick every four seconds (torch 2.13, gloo, measured on a hung rank).
    return before.ticks is not None and now.ticks is not None and now.ticks - before.ticks > 1 + seconds
