"""What a test of a codemod's fixes must show, and what is printed where one is wrong."""

from __future__ import annotations

from codemods.api.codemod import DdpCodemod
from codemods.data.printed_errors import UNUSED, WAITING
from ddpfix.results import Fixed
from ddpfix.summary.markdown import code, prose
from ddpfix.summary.places import codemod_of

_TIME_OUT = " after the time-out of the process group"
_NAMES = "`TORCH_DISTRIBUTED_DEBUG=INFO` makes torch name the parameters without a gradient"
_LIGHTNING = " (Lightning 2 puts its own text over that: look for `p.grad is None` in `on_after_backward`)"


def must_show(key: str, fixed: Fixed) -> str:
    """One line: what is to be seen, then the messages of a fix that is wrong."""
    codemod = codemod_of(key) or DdpCodemod
    said = prose(codemod.must_show)
    printed = codemod.printed
    if printed is None:
        return said
    lightning = any(b"lightning" in data.lower() for data in fixed.before.values())
    shown = [code(error) for error in printed if error not in WAITING and (lightning or "Lightning" not in error)]
    shown += [code(WAITING[-1]) + _TIME_OUT] if {*printed} & {*WAITING} else []
    if not shown:
        return said
    notes = []
    if {*printed} & {*UNUSED}:
        notes.append(_NAMES + (_LIGHTNING if lightning else ""))
    wrong = f"If it is wrong: {', '.join(shown)}"
    return f"{said} {wrong}{'; ' if notes else ''}{'; '.join(notes)}."
