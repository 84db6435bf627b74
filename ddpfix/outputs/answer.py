"""What a format may need: the reports, where their paths are seen from, the lines of the source, the line replacements.

Everything is read beforehand, so that a format is a pure function of it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.api.findings import Applicability, Finding, Span
from codemods.files.source import Unreadable, decode
from codemods.runtime.record import field, record
from ddpfix.baseline import Entry
from ddpfix.outputs.paths import Shown
from ddpfix.results import Report

if TYPE_CHECKING:
    from codemods.files.notebook_places import Layout

SOURCES, EDITS = "sources", "edits"  # what a format may ask for in its NEEDS


@record
class LineEdit:
    """Whole lines of a file to replace: `top` to `bottom`, from 1, both included; `text` ends with a line end or is empty."""

    path: str
    top: int
    bottom: int
    text: str


@record
class Checked:
    """One project: its report, how its paths are shown, and, where a format needs them, bytes of files and edits by finding.

    notebooks: where the lines of those with findings stand in their files.
    """

    report: Report
    shown: Shown
    sources: Mapping[str, bytes] = field(default_factory=dict)
    edits: Mapping[str, Sequence[LineEdit]] = field(default_factory=dict)
    notebooks: Mapping[str, Layout] = field(default_factory=dict)

    def span(self, finding: Finding) -> Span:
        """Where the finding stands in the file: of a notebook, in its JSON."""
        layout = self.notebooks.get(finding.path)
        return layout.span(finding.span) if layout else finding.span

    def line_in_file(self, path: str, line: int) -> int:
        layout = self.notebooks.get(path)
        return layout.place(line, 0)[0] if layout else line

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        return {path: lines_of(path, data) for path, data in self.sources.items()}

    def line(self, path: str, number: int, *, with_end: bool = False) -> str:
        """A line of the source, without its end unless that is wanted; "" where there is none."""
        if not self.has_line(path, number):
            return ""
        line = self._lines[path][number - 1]
        return line if with_end else line.rstrip("\r\n")

    def has_line(self, path: str, number: int) -> bool:
        return 0 < number <= len(self._lines.get(path, ()))


@record
class Answer:
    """What `check` found. fails_from: the rank of the level that makes it fail; unsafe: fixes on an assumption are wanted;
    with_edits: the JSON shows the line replacements.

    known: findings left out because a baseline names them; gone: entries of the baseline that nothing answers to any more.
    """

    projects: tuple[Checked, ...]
    folder: Path
    fails_from: int = 1
    unsafe: bool = False
    with_edits: bool = False
    baseline: bool = False
    known: int = 0
    gone: tuple[Entry, ...] = ()

    def rows(self) -> Iterator[tuple[Checked, Finding]]:
        """Every finding with its project, in the order of the reports."""
        for project in self.projects:
            for finding in project.report.findings:
                yield project, finding

    @property
    def reports(self) -> list[tuple[Report, Shown]]:
        return [(p.report, p.shown) for p in self.projects]

    def home(self, project: Checked, path: str) -> str:
        """A path as forges want it: from the root of the repository; with several projects, from the working folder."""
        return path if len(self.projects) == 1 else project.shown(path)

    def fails(self, finding: Finding) -> bool:
        return finding.applicability.rank >= self.fails_from

    def offered(self, project: Checked, finding: Finding) -> Sequence[LineEdit]:
        """The line replacements of a fix that would be made: an unsafe one only where unsafe fixes are wanted."""
        wanted = finding.applicability is Applicability.SAFE or self.unsafe
        return project.edits.get(finding.id, ()) if wanted else ()

    def edit_objects(self) -> dict[str, list[dict[str, Any]]]:
        """Finding id -> its line replacements as plain values, paths as the user sees them."""
        return {
            key: [
                {"path": p.shown(e.path), "start_line": e.top, "end_line": e.bottom, "replacement": e.text} for e in edits
            ]
            for p in self.projects
            for key, edits in p.edits.items()
        }


def lines_of(path: str, data: bytes) -> list[str]:
    """The lines of a file, broken as spans count them."""
    return io.StringIO(text_of(path, data), newline="").readlines()


def text_of(path: str, data: bytes) -> str:
    try:
        return decode(path, data)[0]
    except Unreadable:
        return data.decode("utf-8", "replace")


def first_line(project: Checked, finding: Finding) -> Span:
    """The finding's place, cut at the end of its first line.

    A forge shows a result beside a change only where all its lines are part of it, and puts an annotation below the last one:
    a whole guarded block would be seen seldom, and far from its `if`.
    """
    span = project.span(finding)
    if span.end_line == span.line:
        return span
    return Span(span.line, span.column, span.line, max(span.column, len(project.line(finding.path, span.line))))


def story(finding: Finding) -> str:
    """What a reader of one finding is told: the message, and the reason behind it; in a notebook, in which cell."""
    text = f"{finding.message} ({finding.reason})" if finding.reason else finding.message
    return plain(f"cell {finding.cell}, line {finding.cell_line}: {text}" if finding.cell else text)


def plain(text: str) -> str:
    """Text that UTF-8 can write: a byte of a file name that is no text becomes the replacement character."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
