"""As how many processes a program is run, as far as is seen."""

from __future__ import annotations

from enum import IntEnum


class Start(IntEnum):
    """As how many processes a program is seen to run, the surest last."""

    ONE = 0  # nothing that it comes to starts ranks
    OPEN = 1  # a framework that would train on several, if somebody launched it so
    JOINS = 2  # it joins the processes of a launcher
    PRESUMED = 3  # the same, where no text says how any program is started, and one process may run it as well
    LIKELY = 4  # a framework that starts as many as its settings say, or a command whose script is a variable
    SEVERAL = 5

    @property
    def is_several(self) -> bool:
        """True for a program of several processes, as far as is seen."""
        return self >= Start.PRESUMED
