"""Between places of ours (lines from 1, columns in characters) and those of the protocol (from 0, columns in units that the
client chose)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path
from pygls.workspace import PositionCodec

from codemods.api.findings import Span


def split(text: str) -> list[str]:
    """Lines with their ends, as Python and the protocol both count them."""
    return io.StringIO(text, newline="").readlines()


def first_line(span: Span, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """The place, cut at the end of its first line: a whole guarded block underlined hides what is in it."""
    line = lines[span.line - 1].rstrip("\r\n") if 0 < span.line <= len(lines) else ""
    end = min(span.end_column, len(line)) if span.end_line == span.line else len(line.rstrip())
    start = min(span.column, len(line))
    found = types.Range(types.Position(span.line - 1, start), types.Position(span.line - 1, max(start, end)))
    return codec.range_to_client_units(list(lines), found)


def whole_line(line: int) -> types.Range:
    """A place of which only the line is known."""
    return types.Range(types.Position(max(line, 1) - 1, 0), types.Position(max(line, 1), 0))


def edits(before: str, after: str, codec: PositionCodec) -> list[types.TextEdit]:
    """The whole lines that differ, each run as one edit, so that the cursor and folded code stay where they are."""
    old, new = split(before), split(after)
    out = []
    for top, bottom, first, last in _different(old, new):
        start = types.Position(top, 0)
        end = types.Position(bottom, 0)
        if bottom == len(old) and old and not old[-1].endswith(("\n", "\r")):  # there is no line behind the last one
            end = types.Position(bottom - 1, len(old[-1])) if bottom > 0 else end
            if top == bottom:
                start = end
        text = "".join(new[first:last])
        out.append(types.TextEdit(codec.range_to_client_units(old, types.Range(start, end)), text))
    return out


def _different(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """(from, to in the old lines, from, to in the new ones); what is alike at both ends is not compared with all the rest."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    inner = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for kind, a, b, c, d in inner.get_opcodes():
        if kind != "equal":
            yield head + a, head + b, head + c, head + d


def uri_of(path: Path) -> str:
    return from_fs_path(str(path)) or path.as_uri()
