"""The first lines of a summary: what breaks today, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemods.api.findings import SEVERITIES, Finding
from ddpfix.summary.markdown import plural


def breaks_today(groups: Mapping[str, Sequence[Finding]]) -> list[str]:
    """A line for each severity that occurs: how many fixes, and by which codemods."""
    out = []
    for severity, kind in SEVERITIES.items():
        mine = {key: sum(f.severity == severity for f in found) for key, found in groups.items()}
        if count := sum(mine.values()):
            codes = ", ".join(key for key, number in mine.items() if number)
            out.append(f"- **{kind}**: {plural(count, 'place')} ({codes})")
    return out
