"""The width that the lines of a file keep, and what a change makes wider."""

from __future__ import annotations

from codemods.api.findings import ReplaceExpression
from codemods.files.source import SourceModule

_USUAL, _MOST = 88, 120
_FEW = 50  # one line of so many may be wider than the others


def width_kept(module: SourceModule) -> int:
    """Of its lines, but for the few that are wider than the others."""
    widths = sorted((len(line.rstrip()) for line in module.lines), reverse=True)
    kept = widths[len(widths) // _FEW] if widths else _USUAL
    return min(max(kept, _USUAL), _MOST)


def is_too_wide(module: SourceModule, edit: ReplaceExpression) -> bool:
    """True where the edit makes its line wider than the file keeps its lines."""
    if edit.span.line != edit.span.end_line:
        return False
    before = len(module.lines[edit.span.line - 1].rstrip())
    after = before + len(edit.code) - (edit.span.end_column - edit.span.column)
    return after > max(before, width_kept(module))
