"""Where the findings of a fix stand in the new text: a reader of the summary has the changed files before him."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from codemods.api.findings import ExtendImport, Finding, InsertAfter, NeedImport, Span
from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed

Lines = tuple[int, ...]


def in_new_text(fixed: Fixed) -> Fixed:
    """`fixed` with the places of its fixes as lines of the new text. What is left was found there already."""
    return replace(fixed, fixed=in_lines_of(fixed.fixed, fixed.before, fixed.after))


def in_lines_of(findings: Sequence[Finding], before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Findings of `before` with their places as lines of `after`."""
    lines = {
        path: _new_lines(before[path], text) for path, text in after.items() if path in before and not path.endswith(NOTEBOOK)
    }  # fmt: skip
    return tuple(_moved(finding, lines) for finding in findings)


def _moved(finding: Finding, lines: dict[str, Lines]) -> Finding:
    span = finding.span
    start, end = _line(lines, finding.path, span.line), _line(lines, finding.path, span.end_line)
    if (added := _added_behind(finding)) is not None:  # the statement that the reader finds changed
        start = end = _line(lines, finding.path, added.end_line) + 1
    evidence, remaining = (
        tuple(replace(e, line=_line(lines, e.path, e.line)) for e in part) for part in (finding.evidence, finding.remaining)
    )
    return replace(finding, span=replace(span, line=start, end_line=max(start, end)), evidence=evidence, remaining=remaining)


def _added_behind(finding: Finding) -> Span | None:
    """The statement behind which a new one is all that the fix is, but for its imports."""
    own = [edit for edit in finding.edits if not isinstance(edit, NeedImport | ExtendImport)]
    only = own[0] if len(own) == 1 else None
    return only.span if isinstance(only, InsertAfter) and only.path == finding.path else None


def _line(lines: dict[str, Lines], path: str, line: int) -> int:
    known = lines.get(path, ())
    return known[line - 1] if 0 < line <= len(known) else line


def _new_lines(before: bytes, after: bytes) -> Lines:
    """For each old line the new one: of a changed line its counterpart, of a deleted one what stands there now.

    A line that only went under a guard is the same line.
    """
    old, new = ([line.strip() for line in text.splitlines()] for text in (before, after))
    out: list[int] = []
    for _, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        out += [min(j1 + at, max(j2 - 1, j1)) + 1 for at in range(i2 - i1)]
    return tuple(min(line, max(len(new), 1)) for line in out)
