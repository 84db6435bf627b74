"""What a test of a codemod's fixes must show, and what is printed where one is wrong."""

from __future__ import annotations

import re

from codemods.api.codemod import DdpCodemod
from codemods.data.printed_errors import HALF_WRITTEN, UNUSED, WAITING
from ddpfix.results import Fixed
from ddpfix.summary.markdown import code, prose
from ddpfix.summary.places import by_code, codemod_of

# What is read while it is half written, and what waits for a rank that does not come: seen in a file of the fix, or not told.
_READS = re.compile(
    rb"\b(?:torch|np|numpy|json|pickle|joblib|yaml)\.(?:safe_)?load\w*\(|from_pretrained\(|load_from_checkpoint\(|\bread_\w+\("
)
_WAITS = re.compile(
    rb"\bbarrier\(|wait_for_everyone\(|\b(?:all_)?(?:reduce|gather)\w*\(|\bbroadcast\w*\(|\bsync_dist\b|\binit_process_group\("
)
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
    paths = {finding.path for finding in by_code(fixed.fixed).get(key, ())}
    lightning = any(b"lightning" in data.lower() for data in fixed.before.values())
    reads, waits = (any(seen.search(fixed.after.get(p, b"")) for p in paths) for seen in (_READS, _WAITS))
    known = [error for error in printed if error not in WAITING and (reads or error not in HALF_WRITTEN)]
    shown = [code(error) for error in known if lightning or "Lightning" not in error]
    shown += [code(WAITING[-1]) + _TIME_OUT] if waits and {*printed} & {*WAITING} else []
    if not shown:
        return said
    notes = []
    if {*printed} & {*UNUSED}:
        notes.append(_NAMES + (_LIGHTNING if lightning else ""))
    wrong = f"If it is wrong: {', '.join(shown)}"
    return f"{said} {wrong}{'; ' if notes else ''}{'; '.join(notes)}."
