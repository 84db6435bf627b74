"""Reads for the formats what they need beside a report: bytes of the files, line replacements of the fixes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from codemods.files.text_file import NOTEBOOK
from ddpfix import engine
from ddpfix.outputs.answer import EDITS, SOURCES, Checked, LineEdit
from ddpfix.outputs.paths import Shown
from ddpfix.results import Report

if TYPE_CHECKING:
    from codemods.files.notebook_places import Layout


def gather(
    report: Report, shown: Shown, needs: Collection[str], *, read: Callable[[str], bytes | None] | None = None
) -> Checked:
    """The project as the formats see it. read: gives the bytes where they are not those of the disk."""
    read = read or engine.disk_reader(report.root)
    paths = {f.path for f in report.findings} | {e.path for f in report.findings for e in f.edits}
    sources = {path: data for path in sorted(paths) if (data := read(path)) is not None} if SOURCES in needs else {}
    notebooks = _layouts(paths | {e.path for f in report.findings for e in f.evidence}, read)
    return Checked(report, shown, sources, _edits(report, read) if EDITS in needs else {}, notebooks)


def _layouts(paths: Iterable[str], read: Callable[[str], bytes | None]) -> dict[str, Layout]:
    wanted = [path for path in paths if path.endswith(NOTEBOOK)]
    if not wanted:
        return {}
    from codemods.files.notebook_places import layout

    return {path: layout(path, data) for path in wanted if (data := read(path)) is not None}


def _edits(report: Report, read: Callable[[str], bytes | None]) -> dict[str, tuple[LineEdit, ...]]:
    found = engine.line_edits(report, read=read)
    return {key: tuple(_edit(row) for row in rows) for key, rows in found.items()}


def _edit(row: Mapping[str, object]) -> LineEdit:
    path, top, bottom, text = (row[name] for name in ("path", "start_line", "end_line", "replacement"))
    assert isinstance(top, int) and isinstance(bottom, int)
    return LineEdit(str(path), top, bottom, str(text))
