"""Reads for the formats what they need beside a report: bytes of the files, line replacements of the fixes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ddpfix import engine
from ddpfix.outputs.answer import EDITS, SOURCES, Checked, LineEdit
from ddpfix.outputs.paths import Shown
from ddpfix.results import Report


def gather(
    report: Report, shown: Shown, needs: Collection[str], *, read: Callable[[str], bytes | None] | None = None
) -> Checked:
    """The project as the formats see it. read: gives the bytes where they are not those of the disk."""
    read = read or engine.disk_reader(report.root)
    paths = {f.path for f in report.findings} | {e.path for f in report.findings for e in f.edits}
    sources = {path: data for path in sorted(paths) if (data := read(path)) is not None} if SOURCES in needs else {}
    return Checked(report, shown, sources, _edits(report, read) if EDITS in needs else {})


def _edits(report: Report, read: Callable[[str], bytes | None]) -> dict[str, tuple[LineEdit, ...]]:
    found = engine.line_edits(report, read=read)
    return {key: tuple(_edit(row) for row in rows) for key, rows in found.items()}


def _edit(row: Mapping[str, object]) -> LineEdit:
    path, top, bottom, text = (row[name] for name in ("path", "start_line", "end_line", "replacement"))
    assert isinstance(top, int) and isinstance(bottom, int)
    return LineEdit(str(path), top, bottom, str(text))
