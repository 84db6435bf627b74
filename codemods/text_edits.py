"""Edits -> new lines of a YAML file: scalars by their exact span, comment lines above a line. Every other byte stays.

PyYAML only reads: it would write the file anew, without its comments and in its own styles. What the new text means is held
against what the old one meant, event by event; anything but the scalars that were asked for is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from codemods.findings import AddComment, Edit, ReplaceExpression
from codemods.runs import RewriteError, newline_of
from codemods.text_file import TextFile

# plain scalars that YAML takes as they are, in block and flow style
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")


def replacements(file: TextFile, edits: Sequence[Edit]) -> list[tuple[int, int, str]]:
    """(first line, last line, new text) of the lines that the edits change, in order. Raises RewriteError.

    A ReplaceExpression's `code` is the value: it keeps the quotes of the scalar in whose place it is put.
    """
    comments: dict[int, list[str]] = {}
    scalars: dict[int, list[ReplaceExpression]] = {}
    for edit in dict.fromkeys(edits):
        if isinstance(edit, ReplaceExpression) and edit.span.line == edit.span.end_line:
            scalars.setdefault(edit.span.line, []).append(edit)
        elif isinstance(edit, AddComment):
            comments.setdefault(edit.span.line, []).extend(edit.lines)
        else:
            raise RewriteError(f"{file.path}:{edit.span.line}: {type(edit).__name__} is no edit for such a file")
    out = []
    for number in sorted({*comments, *scalars}):
        line = file.lines[number - 1]
        new = line
        for edit in sorted(scalars.get(number, ()), key=lambda e: -e.span.column):
            old = new[edit.span.column : edit.span.end_column]
            new = new[: edit.span.column] + in_style_of(old, edit.code) + new[edit.span.end_column :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        above = "".join(f"{indent}# {text}".rstrip() + newline_of(file.lines, number) for text in comments.get(number, ()))
        out.append((number, number, above + new))
    _must_mean_the_same(file, out, {e.code for found in scalars.values() for e in found}, sum(map(len, scalars.values())))
    return out


def in_style_of(old: str, value: str) -> str:
    """`value` as a scalar with the quotes of `old`; quoted where it needs it."""
    if old[:1] == "'" == old[-1:]:
        return "'" + value.replace("'", "''") + "'"
    if old[:1] == '"' == old[-1:] or not _PLAIN.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return value


def _must_mean_the_same(file: TextFile, made: Sequence[tuple[int, int, str]], values: set[str], count: int) -> None:
    """Raises RewriteError unless exactly `count` scalars differ, each with one of the new values."""
    lines = list(file.lines)
    for top, bottom, new in reversed(made):
        lines[top - 1 : bottom] = [new]
    before, after = _events(file.text), _events("".join(lines))
    if before is None or after is None or len(before) != len(after):
        raise RewriteError(f"the new text of {file.path} would not be the same YAML")
    different = [new for old, new in zip(before, after, strict=True) if old != new]
    if len(different) > count or any(kind != "ScalarEvent" or value not in values for kind, value, *_ in different):
        raise RewriteError(f"the new text of {file.path} would change more than was meant")


def _events(text: str) -> list[tuple[str, ...]] | None:
    import yaml

    try:
        return [
            (type(e).__name__, *(str(getattr(e, name, "")) for name in ("value", "anchor", "tag", "style", "flow_style")))
            for e in yaml.parse(text, yaml.SafeLoader)
        ]
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
