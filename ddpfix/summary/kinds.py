"""How many findings there are of each kind, and what became of them: bars of plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemods.api.findings import Finding
from ddpfix.results import Fixed
from ddpfix.summary.places import by_code, offered, told, unmade

LONGEST = 40
FIXED, OFFERED, TOLD = "█", "▒", "░"


def bars(fixed: Fixed) -> list[str]:
    """A bar a codemod, the most frequent first, on the scale of the longest; nothing where there is one of them only."""
    parts: tuple[tuple[str, str, Mapping[str, Sequence[Finding]]], ...] = (
        (FIXED, "fixed", by_code(fixed.fixed)),
        (OFFERED, "unsafe, not made", by_code((*offered(fixed), *(f for f, _ in unmade(fixed))))),
        (TOLD, "reported", by_code(told(fixed))),
    )
    totals = {code: sum(len(found.get(code, ())) for _, _, found in parts) for code in {c for _, _, f in parts for c in f}}
    if len(totals) < 2:
        return []
    names = {code: found[code][0].name for _, _, found in parts for code in found}
    most = max(totals.values())
    width = max(len(name) for name in names.values())
    rows = []
    for code in sorted(totals, key=lambda c: (-totals[c], c)):
        counts = [(mark, len(found.get(code, ()))) for mark, _, found in parts]
        rows.append(f"{code} {names[code]:<{width}}  {_bar(counts, most)} {totals[code]}")
    used = [(mark, word) for mark, word, found in parts if found]
    return [*rows, "", "  ".join(f"{mark} {word}" for mark, word in used)]


def _bar(counts: Sequence[tuple[str, int]], most: int) -> str:
    """Each part at least one mark long; short bars count their findings one by one."""
    scale = min(1.0, LONGEST / most)
    return "".join(mark * max(1, round(count * scale)) for mark, count in counts if count)
