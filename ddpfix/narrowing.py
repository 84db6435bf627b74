"""The findings that a change is about: the whole project is read, and those are kept that lie where lines changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codemods.api.findings import Finding
from codemods.runtime.record import replace
from codemods.store.project import Project
from ddpfix.results import Report

if TYPE_CHECKING:
    from codemods.files.notebook_places import Layouts

Ranges = tuple[tuple[int, int], ...]


def touched(report: Report, project: Project, changes: Mapping[str, Ranges]) -> Report:
    """The report with the findings of which a line, the function round it, or a line of the evidence changed."""
    from codemods.files.notebook_places import Layouts

    lines = Layouts(project.raw)  # what changed are lines of files
    return replace(report, findings=tuple(f for f in report.findings if _is_touched(f, project, changes, lines)))


def _is_touched(finding: Finding, project: Project, changes: Mapping[str, Ranges], lines: Layouts) -> bool:
    """True if the finding may be there because of the changes: its own lines, its function, what it gives as a reason."""
    if ranges := changes.get(finding.path):
        top, bottom = (lines.line(finding.path, line) for line in _function(finding, project))
        if _meets(ranges, top, bottom):
            return True
    seen = ((changes.get(e.path, ()), lines.line(e.path, e.line)) for e in finding.evidence if e.path in changes and e.line)
    return any(_meets(ranges, line, line) for ranges, line in seen)


def _function(finding: Finding, project: Project) -> tuple[int, int]:
    """The lines of the innermost function round the finding, decorators included; its own lines where there is none."""
    top, bottom = finding.span.line, finding.span.end_line
    module = project.module(finding.path)
    best: tuple[int, int] | None = None
    for function in module.functions if module else ():
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        last = function.end_lineno or function.lineno
        if first <= top and bottom <= last and (best is None or last - first <= best[1] - best[0]):
            best = first, last
    return best or (top, bottom)


def _meets(ranges: Ranges, top: int, bottom: int) -> bool:
    return any(first <= bottom and top <= last for first, last in ranges)
