"""The first lines of a summary: what breaks today, the worst first; what was fixed of it, and what was not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codemods.api.findings import SEVERITIES, Finding
from ddpfix.summary.markdown import code, plural, prose
from ddpfix.summary.places import by_code, codemod_of, origin_of

MOST_PLACES = 3
MOST_KINDS = 3
BREAKS = "What breaks today, the worst first:"
UNTIDY = "What is untidy today:"
_CLAUSE = re.compile(r"(?<=[\w`)]): |(?<=[.!?])(?:\s|$)")


def heading(rows: Sequence[str]) -> str:
    """What stands above the rows: noise alone breaks nothing."""
    return UNTIDY if all(row.startswith(f"- **{SEVERITIES['noise']}**") for row in rows) else BREAKS


def breaks_today(
    groups: Mapping[str, Sequence[Finding]], left: Sequence[Finding] = (), launched: frozenset[str] = frozenset()
) -> list[str]:
    """A line for each severity that occurs: what it is in words, how many places, and whether they were fixed.

    launched: files that a command of the repository starts, whose places are named first.
    """
    out = []
    for severity, kind in SEVERITIES.items():
        parts = [
            f"{_words(key)} ({key}): {plural(count, 'place')}, fixed"
            for key, found in groups.items()
            if (count := sum(f.severity == severity for f in found))
        ]
        if stays := [f for f in left if f.severity == severity]:
            parts += _counted(stays) if severity == "noise" else _named(stays, launched)
        if parts:
            out.append(f"- **{kind}**: {'; '.join(parts)}")
    return out


def _words(key: str) -> str:
    """What is wrong, as a phrase: the first clause of the codemod's summary."""
    codemod = codemod_of(key)
    if codemod is None or origin_of(key):
        return "what a codemod of this team's own finds"
    said = _CLAUSE.split(codemod.summary())[0].strip().rstrip(".")
    return prose(said[0].lower() + said[1:] if said[:2].isalpha() or said.startswith("A ") else said)


def _counted(found: Sequence[Finding]) -> list[str]:
    return [f"{plural(len(found), 'place')} not fixed ({', '.join(sorted({f.code for f in found}))})"]


def _named(found: Sequence[Finding], launched: frozenset[str]) -> list[str]:
    """What stays, in words, with the first places of each kind."""
    in_order = sorted(found, key=lambda f: (f.path not in launched, f.path, f.span))
    first = dict.fromkeys(f.code for f in in_order)
    kinds = by_code(in_order)
    out, shown = [], 0
    for key in list(first)[:MOST_KINDS]:
        here = sorted(kinds[key], key=lambda f: (f.path not in launched, f.path, f.span))
        named = here[: max(1, MOST_PLACES + 1 - len(first))]
        shown += len(named)
        out.append(f"{_words(key)} ({key}): {', '.join(code(f.place) for f in named)}, not fixed")
    more = [f"{plural(len(found) - shown, 'more place')} not fixed"] if len(found) > shown else []
    return [*out, *more]
