"""What of the functions that were changed goes on as before on every rank, in one line a file."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.api.findings import Evidence, Finding
from ddpfix.summary.markdown import code, numbers, plural, prose

_MOST_FILES = 6
_MOST_REASONS = 3


def remaining(findings: Sequence[Finding]) -> list[str]:
    """`Left on every rank in src/main.py: lines 201, 208 (it names the rank), 250 (…)`; none where nothing is left."""
    files: dict[str, dict[str, dict[int, Evidence]]] = {}
    for place in (place for finding in findings for place in finding.remaining):
        files.setdefault(place.path, {}).setdefault(place.text, {})[place.line] = place
    rows = [f"Left on every rank in {code(path)}: {_by_reason(reasons)}." for path, reasons in sorted(files.items())]
    if len(rows) > _MOST_FILES:
        rows = [*rows[:_MOST_FILES], f"And in {plural(len(rows) - _MOST_FILES, 'more file')}."]
    return rows


def _by_reason(reasons: dict[str, dict[int, Evidence]]) -> str:
    ordered = sorted(reasons.items(), key=lambda one: min(one[1]))
    shown = [f"{_places(places)} ({prose(reason)})" for reason, places in ordered[:_MOST_REASONS]]
    more = {line: place for _, places in ordered[_MOST_REASONS:] for line, place in places.items()}
    return ", ".join([*shown, *([f"and {_places(more)}"] if more else [])])


def _places(places: dict[int, Evidence]) -> str:
    if any(place.cell for place in places.values()):
        return ", ".join(f"cell {p.cell}:line {p.cell_line}" for _, p in sorted(places.items()))
    return f"{'line' if len(places) == 1 else 'lines'} {numbers(set(places))}"
