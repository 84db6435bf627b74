"""The changed lines of a file as short hunks with line numbers, each with the codemods it belongs to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from codemods.api.findings import (
    AddComment,
    AddDecorator,
    DropDecorator,
    Edit,
    Finding,
    InsertAfter,
    InsertBefore,
    NeedImport,
    claims,
)
from codemods.files.source import Unreadable, decode
from codemods.files.text_file import NOTEBOOK
from ddpfix.summary.markdown import plural

CONTEXT = 2
LONGEST_LINE = 200
MOST_LINES = 24
NEAR = 6  # a finding of a later round stands a few lines off its place in the original


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changed lines. before, after: first line and number of lines, context left out; rows: as in a diff."""

    path: str
    before: tuple[int, int]
    after: tuple[int, int]
    header: str
    rows: tuple[str, ...]
    codes: tuple[str, ...] = ()

    @property
    def lines(self) -> range:
        """The changed lines in the old file, or the line behind which something was put."""
        start, count = self.before
        return range(start, start + count) if count else range(max(start - 1, 1), max(start, 2))


def hunks(path: str, before: bytes, after: bytes, findings: Sequence[Finding]) -> tuple[Hunk, ...]:
    """What was changed in a file, with the codes of the findings behind each hunk; one of nobody goes to the first code."""
    if path.endswith(NOTEBOOK):  # a reader knows the code, not the file; lines are the same in both
        from codemods.files.notebook import python_of

        before, after = python_of(path, before), python_of(path, after)
    found = _hunks(path, _text(path, before), _text(path, after))
    here = [(f.code, edit) for f in findings for edit in f.edits if edit.path == path]
    owners: list[set[str]] = [set() for _ in found]
    for code, edit in here:
        touched = [i for i, hunk in enumerate(found) if _touches(edit, hunk)]
        for index in touched or _nearest(edit, found):
            owners[index].add(code)
    first = min((code for code, _ in here), default="")
    return tuple(replace(hunk, codes=tuple(sorted(own)) or (first,)) for hunk, own in zip(found, owners, strict=True))


def _text(path: str, data: bytes) -> list[str]:
    try:
        text = decode(path, data)[0]
    except Unreadable:
        text = data.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _hunks(path: str, old: list[str], new: list[str]) -> list[Hunk]:
    groups: list[list[tuple[int, int, int, int]]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            continue
        if groups and i1 - groups[-1][-1][1] <= CONTEXT:
            groups[-1].append((i1, i2, j1, j2))
        else:
            groups.append([(i1, i2, j1, j2)])
    return [_hunk(path, old, new, group) for group in groups]


def _hunk(path: str, old: list[str], new: list[str], group: list[tuple[int, int, int, int]]) -> Hunk:
    i1, i2, j1, j2 = group[0][0], group[-1][1], group[0][2], group[-1][3]
    above, below = old[max(0, i1 - CONTEXT) : i1], old[i2 : i2 + CONTEXT]
    rows = [" " + line for line in above]
    at = i1
    for a1, a2, b1, b2 in group:
        rows += [" " + line for line in old[at:a1]]
        rows += ["-" + line for line in old[a1:a2]]
        rows += ["+" + line for line in new[b1:b2]]
        at = a2
    rows += [" " + line for line in below]
    around = len(above) + len(below)
    start, count = max(i1 - len(above), 0) + 1, i2 - i1 + around
    header = f"@@ -{start},{count} +{j1 - len(above) + 1},{j2 - j1 + around} @@"
    return Hunk(path, (i1 + 1, i2 - i1), (j1 + 1, j2 - j1), header, _short(rows))


def _short(rows: list[str]) -> tuple[str, ...]:
    shown = [row if len(row) <= LONGEST_LINE else row[:LONGEST_LINE] + " …" for row in rows]
    printable = ["".join(c if c.isprintable() or c == "\t" else "�" for c in row) for row in shown]
    if len(printable) <= MOST_LINES:
        return tuple(printable)
    # the first new line is the guard, the decorator or the comment that it is all about
    new = next((i for i, row in enumerate(printable) if row.startswith("+")), 0)
    third = MOST_LINES // 3
    kept = sorted({*range(third), *range(new, min(new + third, len(printable))), *range(len(printable) - third, len(printable))})
    out: list[str] = []
    for before, index in zip([-1, *kept], kept, strict=False):
        if index > before + 1:
            out.append(f" … {plural(index - before - 1, 'more line')} …")
        out.append(printable[index])
    return tuple(out)


def _region(edit: Edit) -> tuple[int, int]:
    """First and last line of the old file at which an edit shows."""
    span = claims(edit)
    if isinstance(edit, AddDecorator | InsertBefore) or (isinstance(edit, AddComment) and not edit.keyword):
        return span.line - 1, span.line
    if isinstance(edit, DropDecorator):
        return max(1, span.line - 4), span.line
    if isinstance(edit, InsertAfter | NeedImport):
        before = isinstance(edit, NeedImport) and edit.before
        return (span.line - 1, span.line) if before else (span.end_line, span.end_line + 1)
    return span.line, span.end_line


def _touches(edit: Edit, hunk: Hunk) -> bool:
    first, last = _region(edit)
    start, count = hunk.before
    if count:
        return first <= start + count - 1 and start <= last
    # between two lines of the old file: both must be the edit's
    return first <= start - 1 and start <= last


def _nearest(edit: Edit, found: Sequence[Hunk]) -> Iterable[int]:
    first, _ = _region(edit)
    away = [(abs(hunk.before[0] - first), index) for index, hunk in enumerate(found)]
    return [index for distance, index in sorted(away)[:1] if distance <= NEAR]
