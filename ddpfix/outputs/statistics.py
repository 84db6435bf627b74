"""`--statistics`: how often each codemod found something, the most frequent first."""

from __future__ import annotations

from ddpfix.escaping import harmless
from ddpfix.outputs.answer import Answer
from ddpfix.outputs.text import MARKS


def table(answer: Answer) -> str:
    """A line for each codemod: how many, its code, how many at each level, its name."""
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for _, finding in answer.rows():
        found.setdefault(finding.code, []).append(finding.applicability.value)
        names[finding.code] = finding.name
    rows = [
        (str(len(levels)), code, names[code], ", ".join(f"{levels.count(v)} {m}" for v, m in MARKS.items() if v in levels))
        for code, levels in sorted(found.items(), key=lambda row: (-len(row[1]), row[0]))
    ]
    wide, long = (max((len(row[i]) for row in rows), default=0) for i in (0, 2))
    return "".join(f"{harmless(f'{n.rjust(wide)}  {code}  {name.ljust(long)}  {levels}')}\n" for n, code, name, levels in rows)
