"""The first lines of a summary: what breaks today, the worst first; what was fixed of it, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemods.api.findings import SEVERITIES, Finding
from ddpfix.summary.markdown import code, plural

MOST_PLACES = 3


def breaks_today(
    groups: Mapping[str, Sequence[Finding]], left: Sequence[Finding] = (), launched: frozenset[str] = frozenset()
) -> list[str]:
    """A line for each severity that occurs: how many fixes, by which codemods, and the places that stay as they are.

    launched: files that a command of the repository starts, whose places are named first.
    """
    out = []
    for severity, kind in SEVERITIES.items():
        mine = {key: sum(f.severity == severity for f in found) for key, found in groups.items()}
        parts = []
        if count := sum(mine.values()):
            codes = ", ".join(key for key, number in mine.items() if number)
            parts.append(f"{plural(count, 'place')} fixed here ({codes})")
        if stays := [f for f in left if f.severity == severity]:
            parts.append(f"not fixed: {_counted(stays) if severity == 'noise' else _named(stays, launched)}")
        if parts:
            out.append(f"- **{kind}**: {'; '.join(parts)}")
    return out


def _counted(found: Sequence[Finding]) -> str:
    return f"{plural(len(found), 'place')} ({', '.join(sorted({f.code for f in found}))})"


def _named(found: Sequence[Finding], launched: frozenset[str]) -> str:
    first = sorted(found, key=lambda f: (f.path not in launched, f.path, f.span))
    shown = ", ".join(f"{code(f.place)} ({f.code})" for f in first[:MOST_PLACES])
    more = f" and {plural(len(first) - MOST_PLACES, 'more place')}" if len(first) > MOST_PLACES else ""
    return shown + more
