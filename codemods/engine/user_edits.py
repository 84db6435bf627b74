"""A fix as a person has edited it: whole lines in the place of those that stand there, wherever the file has them by now."""

from __future__ import annotations

import io
from collections.abc import Sequence

from codemods.api.findings import Finding, Fix, ReplaceLines, Span
from codemods.runtime.record import record, replace
from codemods.store.project import Project


@record
class EditedLines:
    """Lines of a file as a person wants them: from `line` (1 is the first) `before` stands, `after` takes its place.

    Both are whole lines with their ends; `before` may be empty, then `after` is put in front of `line`.
    """

    path: str
    line: int
    before: str
    after: str


def in_place_of(finding: Finding, rows: Sequence[EditedLines], project: Project, moved: int = 0) -> Finding | str:
    """The finding with `rows` in the place of its own edits, or why that cannot be.

    moved: by how many lines the finding itself stands lower than when the lines were edited. Lines that read as wanted
    already are left: an import that came with another fix is not put in twice.
    """
    edits = []
    own = {finding.path, *(edit.path for edit in (finding.fix.edits if finding.fix else ()))}
    for row in rows:
        if row.path not in own:
            return f"{row.path} has lines edited by hand, and is no file that this fix touches"
        module = project.module(row.path)
        if module is None:
            return f"{row.path}, which holds lines edited by hand, cannot be read"
        before, after = lines_of(row.before), lines_of(row.after)
        expected = row.line - 1 + (moved if row.path == finding.path else 0)
        if len(after) > len(before) and _places(module.lines, after, expected):
            continue
        found = _places(module.lines, before, expected)
        if len(found) != 1:
            which = "not there any more" if not found else "there several times, and not where they were"
            return f"the lines that were edited by hand ({row.path}:{row.line}) are {which}"
        top = found[0] + 1
        edits.append(ReplaceLines(row.path, Span(top, 0, top + len(before), 0), row.after))
    return replace(finding, fix=Fix(finding.applicability, tuple(edits), finding.fix.group if finding.fix else ""))


def _places(lines: Sequence[str], wanted: Sequence[str], expected: int) -> list[int]:
    """Indices at which `wanted` stands: the expected one alone where it is among them."""
    size = len(wanted)
    if lines[expected : expected + size] == wanted and 0 <= expected <= len(lines):
        return [expected]
    if not size:
        return []
    return [i for i in range(len(lines) - size + 1) if lines[i] == wanted[0] and lines[i : i + size] == wanted]


def lines_of(text: str) -> list[str]:
    """Lines with their ends, broken as Python breaks them."""
    return io.StringIO(text, newline="").readlines()
