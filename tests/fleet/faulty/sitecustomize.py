"""On the path of a run that is to meet faults: the child that reads a repository fails as its name says.

It stands for a parser that does so with some file. The fault is real: a signal, a wait without end, memory without end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

CRASH, HANG, MEMORY = "crash", "hang", "memory"


def _arm() -> None:
    from ddpfix.bot.inside import Inside

    ours = Inside.survey

    def survey(self: Inside, access: Any, branch: str, **asked: Any) -> Any:
        kind = access.url.rpartition("/")[2].partition("-")[0]
        held: list[bytearray] = []
        if kind == CRASH:
            os.kill(os.getpid(), signal.SIGSEGV)
        while kind == HANG:
            time.sleep(1)
        while kind == MEMORY:
            held.append(bytearray(64 << 20))
        return ours(self, access, branch, **asked)

    Inside.survey = survey  # type: ignore[method-assign]


if "ddpfix.bot.child" in sys.orig_argv:
    _arm()
