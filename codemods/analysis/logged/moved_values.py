"""What does the pinned Lightning do with a value before it reduces it? Where it stays on the CPU, NCCL refuses it.

Read in the releases: 1.0 to 1.3 reduce the tensor that is logged where it lies (`Result.log`), 1.4 to 2.0 move it to the module's
device (`v.to(self.device)`), and 2.1 leaves it there again. 1.0 clones what it reduces, which a number has no method for.
"""

from __future__ import annotations

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.logged.log_calls import LogCall

_MOVES_FROM, _MOVES_BELOW = (1, 4), (2, 1)
_TAKES_NUMBERS_FROM = (1, 1)


def is_moved(log: LogCall) -> bool:
    """True where the newest release that the pin allows moves a tensor on the CPU to the device."""
    pin = lightning_pin(log.project, near=log.module.path)
    return pin is not None and pin.surely_below(_MOVES_BELOW) and not pin.surely_below(_MOVES_FROM)


def takes_no_number(log: LogCall) -> bool:
    """True where the pin is for 1.0 alone: `sync_dist=True` on a Python number raises in a run of several processes."""
    pin = lightning_pin(log.project, near=log.module.path)
    return pin is not None and pin.surely_below(_TAKES_NUMBERS_FROM)
