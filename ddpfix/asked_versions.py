"""Which versions a codemod asked for, and the line of the repository that answered: a pin can make a whole file its silence."""

from __future__ import annotations

from codemods.analysis.job_files.said_torch import SaidTorch
from codemods.analysis.version_pins import Pin, Version

METHODS = frozenset({"surely_below", "surely_at_least"})


def answered(holder: object, method: str, version: object, answer: object) -> str:
    """A sentence about one question of `METHODS`; "" where something else was asked."""
    if method not in METHODS or not isinstance(version, tuple) or not isinstance(answer, bool):
        return ""
    if isinstance(holder, Pin):
        asked = f"{holder.package} {holder.spec}".strip()
        who = f"{holder.path}:{holder.line} ({asked})" if holder.path else f"the setting {asked}"
        return _said(who, holder.package, version, below=method == "surely_below", sure=answer)
    if isinstance(holder, SaidTorch):
        if not holder.ranges:
            return "no file of the repository names a version of torch"
        who = ", ".join(dict.fromkeys(f"{s.path}:{s.line}" for s in holder.ranges[:3]))
        return _said(who, "torch", version, below=method == "surely_below", sure=answer)
    return ""


def _said(who: str, package: str, version: Version, *, below: bool, sure: bool) -> str:
    number = ".".join(map(str, version))
    if below:
        return f"by {who}, {package} is {'older than' if sure else 'not surely older than'} {number}"
    return f"by {who}, {package} is {number} or later" if sure else f"by {who}, {package} is not surely {number} or later"
