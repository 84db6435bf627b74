"""Where the lines of a notebook's program stand in its file, and which lines of the file a change replaces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from codemods.api.findings import Span
from codemods.files.notebook import LineStarts, cells_of, program, read, split_lines
from codemods.files.source import BOM, Unreadable
from codemods.files.text_file import NOTEBOOK
from codemods.runtime.record import record


@record
class Layout:
    """Where the characters of a program stand in the file: for each line of a cell, the places of its characters."""

    lines: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]

    def place(self, line: int, column: int) -> tuple[int, int]:
        """(line, column) in the file. What lies outside of cells lies at the nearest line above."""
        at = bisect_right(self.lines, line, key=lambda row: row[0]) - 1
        if at < 0:
            return 1, 0
        number, places = self.lines[at]
        return places[min(column, len(places) - 1)] if number == line else places[-1]

    def span(self, span: Span) -> Span:
        return Span(*self.place(span.line, span.column), *self.place(span.end_line, span.end_column))


class Layouts:
    """Lines of programs as lines of their files, for notebooks that `read` gives; a line of another file is what it is."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read
        self._known: dict[str, Layout] = {}

    def line(self, path: str, line: int) -> int:
        if not path.endswith(NOTEBOOK):
            return line
        if path not in self._known:
            self._known[path] = layout(path, self._read(path) or b"")
        return self._known[path].place(line, 0)[0]


def layout(path: str, data: bytes) -> Layout:
    """The layout of a notebook's program; an empty one where it cannot be read."""
    try:
        notebook = read(path, data)
    except Unreadable:
        notebook = None
    if notebook is None:
        return Layout(())
    begins = {number: line for line, number in cells_of(program(notebook).encode())}
    found = LineStarts(notebook.text)
    rows: list[tuple[int, tuple[tuple[int, int], ...]]] = []
    for code in notebook.codes:
        if code.cell.number in begins:
            places = [p for literal in code.cell.literals for p in literal.places(notebook.text)]
            ends = code.cell.literals[-1].end - 1
            at = 0
            for i, line in enumerate(split_lines(code.cell.source), 1):
                size = len(line.rstrip("\r\n"))
                marks = [*places[at : at + size], places[at + size] if at + size < len(places) else ends]
                rows.append((begins[code.cell.number] + i, tuple(found.place(p) for p in marks)))
                at += len(line)
    return Layout(tuple(rows))


def replaced_lines(before: bytes, after: bytes) -> list[tuple[int, int, str]]:
    """(first line, last line, new text) of what differs between two texts of a file."""
    from difflib import SequenceMatcher

    old, new = split_lines(before.removeprefix(BOM).decode()), split_lines(after.removeprefix(BOM).decode())
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
    out = []
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for tag, i1, i2, j1, j2 in middle.get_opcodes():
        if tag == "insert" and head + i1:  # whole lines are replaced: the one above stays, with the new ones behind it
            out.append((head + i1, head + i1, old[head + i1 - 1] + "".join(new[head + j1 : head + j2])))
        elif tag != "equal":
            out.append((head + i1 + 1, head + i2, "".join(new[head + j1 : head + j2])))
    return out
