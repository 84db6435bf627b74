"""Where the findings of a fix stand in the new text: a reader of the summary has the changed files before him."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher

from codemods.api.findings import Finding
from codemods.files.text_file import NOTEBOOK
from ddpfix.results import Fixed

Lines = tuple[int, ...]


def in_new_text(fixed: Fixed) -> Fixed:
    """`fixed` with the places of its fixes as lines of the new text. What is left was found there already."""
    lines = {
        path: _new_lines(fixed.before[path], after) for path, after in fixed.after.items() if not path.endswith(NOTEBOOK)
    }  # fmt: skip
    return replace(fixed, fixed=tuple(_moved(finding, lines) for finding in fixed.fixed))


def _moved(finding: Finding, lines: dict[str, Lines]) -> Finding:
    span = finding.span
    start, end = _line(lines, finding.path, span.line), _line(lines, finding.path, span.end_line)
    evidence, remaining = (
        tuple(replace(e, line=_line(lines, e.path, e.line)) for e in part) for part in (finding.evidence, finding.remaining)
    )
    return replace(finding, span=replace(span, line=start, end_line=max(start, end)), evidence=evidence, remaining=remaining)


def _line(lines: dict[str, Lines], path: str, line: int) -> int:
    known = lines.get(path, ())
    return known[line - 1] if 0 < line <= len(known) else line


def _new_lines(before: bytes, after: bytes) -> Lines:
    """For each old line the new one: of a changed line its counterpart, of a deleted one what stands there now."""
    old, new = before.splitlines(), after.splitlines()
    out: list[int] = []
    for _, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        out += [min(j1 + at, max(j2 - 1, j1)) + 1 for at in range(i2 - i1)]
    return tuple(min(line, max(len(new), 1)) for line in out)
