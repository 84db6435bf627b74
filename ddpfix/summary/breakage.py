"""The first lines of a summary: what breaks today, the worst first; what was fixed of it, and what was not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from codemods.api.findings import SEVERITIES, Finding
from ddpfix.summary.markdown import code, plural, prose
from ddpfix.summary.places import codemod_of, origin_of
from ddpfix.summary.told_alike import alike

MOST_PLACES = 3
MOST_KINDS = 2
LONGEST_CLAUSE = 110  # characters
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
        fixed = {key: len(mine) for key, found in groups.items() if (mine := [f for f in found if f.severity == severity])}
        stays = sorted(
            (f for f in left if f.severity == severity), key=lambda f: (f.path not in launched, f.path, f.span)
        )
        if severity == "noise":
            parts = [_part(key, count, []) for key, count in fixed.items()] + _counted(stays)
        else:
            parts = _parts(fixed, stays)
        if parts:
            out.append(f"- **{kind}**: {'; '.join(parts)}")
    return out


def _parts(fixed: Mapping[str, int], stays: Sequence[Finding]) -> list[str]:
    """What was fixed, each with what stays of it; then the first other kinds that stay, and how many places there are more."""
    others = [key for key in dict.fromkeys(f.code for f in stays) if key not in fixed][:MOST_KINDS]
    named: dict[str, list[Finding]] = {
        key: [f for f in stays if f.code == key][: 1 if len(others) > 1 or fixed else MOST_PLACES] for key in (*fixed, *others)
    }
    shown = sum(map(len, named.values()))
    more = [f"{plural(len(stays) - shown, 'more place')} not fixed"] if len(stays) > shown else []
    return [*(_part(key, fixed.get(key, 0), here) for key, here in named.items()), *more]


def _part(key: str, fixed: int, stays: Sequence[Finding]) -> str:
    became = [f"{plural(fixed, 'place')} fixed"] if fixed else []
    became += [f"{', '.join(code(f.place) for f in stays)} not fixed"] if stays else []
    return f"{_clause(stays) if stays and not fixed else _words(key)} ({key}): {', '.join(became)}"


def _clause(stays: Sequence[Finding]) -> str:
    """The first clause of what these findings say, where they say one thing in a few words; else that of their codemod."""
    said = _CLAUSE.split(stays[0].message)[0]
    if len(alike(stays)) > 1 or len(said) > LONGEST_CLAUSE:
        return _words(stays[0].code)
    return prose(said)


def _words(key: str) -> str:
    """What is wrong, as a phrase: the first clause of the codemod's summary."""
    codemod = codemod_of(key)
    if codemod is None or origin_of(key):
        return "what a codemod of this team's own finds"
    said = _CLAUSE.split(codemod.summary())[0].strip().rstrip(".")
    return prose(said[0].lower() + said[1:] if said[:2].isalpha() or said.startswith("A ") else said)


def _counted(found: Sequence[Finding]) -> list[str]:
    codes = ", ".join(sorted({f.code for f in found}))
    return [f"{plural(len(found), 'place')} not fixed ({codes})"] if found else []
