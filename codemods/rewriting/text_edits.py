"""Edits -> new lines of a file that is no Python: values, words and keys by exact span. Every other byte stays.

PyYAML only reads: it would write the file anew, without its comments and in its own styles. What the new text means is held
against what the old one meant (`text_meaning`); anything but what was asked for is an error.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from codemods.api.findings import (
    AddComment,
    AddEntry,
    ChangeItems,
    DropEntry,
    Edit,
    ReplaceExpression,
    ReplaceText,
    ReplaceWithText,
    Span,
)
from codemods.files.text_entries import Entry, Table, tables
from codemods.files.text_file import JSON_KINDS, SHELL_KINDS, TextFile
from codemods.rewriting.runs import RewriteError, newline_of
from codemods.rewriting.text_meaning import Meant, must_mean
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

# plain scalars that YAML takes as they are, in block and flow style
_PLAIN = lazy(r"[A-Za-z0-9_./+-]+")
_ITEM = lazy(r"[ ]*(?:-[ ]+)*")


@record(order=True)
class Splice:
    """`text` in the place of `file.text[start:end]`."""

    start: int
    end: int
    text: str


def replacements(file: TextFile, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """(first line, last line, new text) of the lines that the edits change, in order. Raises RewriteError.

    A ReplaceExpression's `code` is the value: it keeps the quotes of the scalar in whose place it is put.
    """
    splices: list[Splice] = []
    meant = Meant()
    for edit in dict.fromkeys(edits):
        splices.append(_splice(file, edit, meant))
    splices.sort()
    for before, after in pairwise(splices):
        if after.start < before.end:
            raise RewriteError(f"{file.path}: two edits would change the same place")
    new = spliced(file.text, splices)
    must_mean(file, TextFile(file.path, new.encode("utf-8")), meant, [(s.start, s.end, s.text) for s in splices])
    return _as_lines(file, splices)


def must_be_read(file: TextFile, made: Sequence[tuple[int, int, str]]) -> None:
    """Raises RewriteError where the file is YAML or JSON and would be none with these lines."""
    lines = list(file.lines)
    for top, bottom, text in reversed(made):
        lines[top - 1 : bottom] = [text]
    new = TextFile(file.path, "".join(lines).encode("utf-8", "surrogatepass"))
    if (file.documents and not new.documents) or (file.json is not None and new.json is None):
        raise RewriteError(f"the new text of {file.path} could not be read any more")


def _splice(file: TextFile, edit: Edit, meant: Meant) -> Splice:
    start, end = (
        file.index_of(n, c) for n, c in ((edit.span.line, edit.span.column), (edit.span.end_line, edit.span.end_column))
    )
    if isinstance(edit, ReplaceExpression) and edit.span.line == edit.span.end_line and not file.path.endswith(SHELL_KINDS):
        meant.values[start] = edit.code
        return Splice(start, end, in_style_of(file.text[start:end], edit.code, is_json=file.path.endswith(JSON_KINDS)))
    if isinstance(edit, ReplaceWithText) and edit.span.line == edit.span.end_line and not file.path.endswith(SHELL_KINDS):
        meant.values[start] = edit.text
        return Splice(start, end, json.dumps(edit.text, ensure_ascii=False))
    if isinstance(edit, ReplaceText):
        meant.texts.append((start, end, edit.text))
        return Splice(start, end, edit.text)
    if isinstance(edit, ChangeItems):
        meant.items.append((start, end, edit.added))
        return Splice(start, end, edit.text)
    if isinstance(edit, AddComment) and not file.path.endswith(JSON_KINDS):
        number, _ = file.reach(edit.span)  # no comment can stand inside a continued command or the text of a scalar
        line = file.lines[number - 1]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        above = "".join(f"{indent}# {text}".rstrip() + newline_of(file.lines, number) for text in edit.lines)
        return Splice(file.index_of(number, 0), file.index_of(number, 0), above)
    if isinstance(edit, DropEntry) and (found := _entry_at(file, edit.span)):
        meant.dropped.add(start)
        return _without(file, *found)
    if isinstance(edit, AddEntry) and (found := _entry_at(file, edit.span)):
        meant.added[start] = meant.added.get(start, 0) + 1
        return _with(file, *found, edit)
    raise RewriteError(f"{file.path}:{edit.span.line}: {type(edit).__name__} is no edit for such a file")


def spliced(text: str, splices: Sequence[Splice]) -> str:
    out, at = [], 0
    for splice in splices:
        out += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*out, text[at:]])


def _as_lines(file: TextFile, splices: Sequence[Splice]) -> list[tuple[int, int, str]]:
    """The splices by the whole lines that they change, joined where they share one."""
    starts = [0]
    for line in file.lines:
        starts.append(starts[-1] + len(line))
    groups: list[tuple[int, int, list[Splice]]] = []
    for splice in splices:
        top = bisect_right(starts, splice.start)
        bottom = bisect_right(starts, max(splice.start, splice.end - 1))
        top, bottom = min(top, len(file.lines)), min(bottom, len(file.lines))
        if groups and top <= groups[-1][1]:
            top, bottom, held = groups[-1][0], max(bottom, groups[-1][1]), groups[-1][2]
            groups[-1] = (top, bottom, [*held, splice])
        else:
            groups.append((top, bottom, [splice]))
    out = []
    for top, bottom, held in groups:
        base = starts[top - 1]
        moved = [Splice(s.start - base, s.end - base, s.text) for s in held]
        out.append((top, bottom, spliced("".join(file.lines[top - 1 : bottom]), moved)))
    return out


def in_style_of(old: str, value: str, *, is_json: bool = False) -> str:
    """`value` as a scalar with the quotes of `old`; quoted where it needs it."""
    if old[:1] == "'" == old[-1:] and not is_json:
        return "'" + value.replace("'", "''") + "'"
    if is_json and not old.startswith('"') and _is_json_literal(value):
        return value
    if is_json or old[:1] == '"' == old[-1:] or not _PLAIN.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return value


def _is_json_literal(value: str) -> bool:
    try:
        return not isinstance(json.loads(value), str)
    except ValueError:
        return False


# Entries


def _entry_at(file: TextFile, span: Span) -> tuple[Table, int] | None:
    for table in tables(file):
        for number, entry in enumerate(table.entries):
            if entry.span == span:
                return table, number
    return None


def _place(file: TextFile, entry: Entry) -> tuple[int, int]:
    span = entry.span
    return file.index_of(span.line, span.column), file.index_of(span.end_line, span.end_column)


def _without(file: TextFile, table: Table, number: int) -> Splice:
    entry, others = table.entries[number], len(table.entries) > 1
    start, end = _place(file, entry)
    if table.flow:
        if number + 1 < len(table.entries):
            return Splice(start, _place(file, table.entries[number + 1])[0], "")
        return Splice(_place(file, table.entries[number - 1])[1] if others else start, end, "")
    line = file.lines[entry.span.line - 1]
    if line[: entry.span.column].strip():
        raise RewriteError(f"{file.path}:{entry.span.line}: the key stands first in the element of a list")
    if not others:
        raise RewriteError(f"{file.path}:{entry.span.line}: the mapping would have no key left")
    top = file.index_of(entry.span.line, 0)
    last = file.lines[entry.span.end_line - 1]
    if last[entry.span.end_column :].strip() and not last[entry.span.end_column :].lstrip().startswith("#"):
        raise RewriteError(f"{file.path}:{entry.span.line}: something else stands behind the value")
    bottom = file.index_of(entry.span.end_line, 0) + len(last)
    if entry.span.end_line == len(file.lines) and not last.endswith(("\n", "\r")):  # the last line of a file without its end
        above = file.lines[entry.span.line - 2]
        top -= len(above) - len(above.rstrip("\r\n"))
    return Splice(top, bottom, "")


def _with(file: TextFile, table: Table, number: int, edit: AddEntry) -> Splice:
    entry = table.entries[number]
    _, end = _place(file, entry)
    key = json.dumps(edit.key) if file.path.endswith(JSON_KINDS) else edit.key
    newline = newline_of(file.lines, entry.span.line)
    if table.flow:
        head = file.lines[entry.span.line - 1][: entry.span.column]
        between = f",{newline}{head}" if not head.strip() else ", "
        return Splice(end, end, f"{between}{key}: {edit.value}")
    head = file.lines[entry.span.line - 1][: entry.span.column]
    if not _ITEM.fullmatch(head):
        raise RewriteError(f"{file.path}:{entry.span.line}: the key shares its line with another")
    line = file.lines[entry.span.end_line - 1]
    below = file.index_of(entry.span.end_line, 0) + len(line)
    made = " " * entry.span.column + f"{key}: {edit.value}"
    return Splice(below, below, made + newline if line.endswith(("\n", "\r")) else newline + made)
