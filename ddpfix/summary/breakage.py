"""The first lines of a summary: what breaks today, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemods.findings import Finding
from ddpfix.breakage import BREAKAGE, ORDER
from ddpfix.summary.markdown import plural


def breaks_today(groups: Mapping[str, Sequence[Finding]]) -> list[str]:
    """A line for each severity that occurs: how many fixes, and by which codemods."""
    out = []
    for kind in ORDER:
        mine = {key: found for key, found in groups.items() if BREAKAGE.get(key) == kind}
        if mine:
            count = plural(sum(len(found) for found in mine.values()), "place")
            out.append(f"- **{kind}**: {count} ({', '.join(mine)})")
    return out
