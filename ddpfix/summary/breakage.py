"""The first lines of a summary: what this change repairs, the worst first; and in one line what was found and is not changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codemods.api.findings import SEVERITIES, Finding, Severity
from ddpfix.summary.markdown import plural, prose
from ddpfix.summary.places import codemod_of, origin_of

REPAIRS = "What this repairs"
TIDIES = "What this tidies up"
_WORST_FIRST = ", the worst first"
_CLAUSE = re.compile(r"(?<=[\w`)]): |(?<=[.!?])(?:\s|$)")
_COUNTED: Mapping[Severity, tuple[str, str]] = {
    "crash": ("a crash", "crashes"),
    "hang": ("a hang", "hangs"),
    "data": ("lost or wrong data in one place", "places with lost or wrong data"),
    "risk": ("what ends or hangs a run under conditions in one place", "places that end or hang a run under conditions"),
    "noise": ("noise or lost time in one place", "places of noise or lost time"),
    "": ("one more finding", "more findings"),
}


def heading(rows: Sequence[str]) -> str:
    """What stands above the rows: noise alone breaks nothing."""
    noise = all(row.startswith(f"- **{SEVERITIES['noise']}**") for row in rows)
    return f"{TIDIES if noise else REPAIRS}{_WORST_FIRST if len(rows) > 1 else ''}:"


def repairs(groups: Mapping[str, Sequence[Finding]]) -> list[str]:
    """A line for each severity that is repaired: what it is in words, and in how many places."""
    out = []
    for severity, kind in SEVERITIES.items():
        fixed = {key: len(mine) for key, found in groups.items() if (mine := [f for f in found if f.severity == severity])}
        if parts := [f"{_words(key)} ({key}): {plural(count, 'place')}" for key, count in fixed.items()]:
            out.append(f"- **{kind}**: {'; '.join(parts)}")
    return out


def counted(left: Sequence[Finding]) -> str:
    """`a hang, 2 crashes`: what of each severity was found and not changed, the worst first."""
    parts = []
    for severity, (one, several) in _COUNTED.items():
        if count := sum(f.severity == severity for f in left):
            parts.append(one if count == 1 else f"{count} {several}")
    return ", ".join(parts)


def _words(key: str) -> str:
    """What is wrong, as a phrase: the first clause of the codemod's summary."""
    codemod = codemod_of(key)
    if codemod is None or origin_of(key):
        return "what a codemod of this team's own finds"
    said = _CLAUSE.split(codemod.summary())[0].strip().rstrip(".")
    return prose(said[0].lower() + said[1:] if said[:2].isalpha() or said.startswith("A ") else said)
