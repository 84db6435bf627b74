"""A Jupyter notebook as one Python program, its code cells in order, and the program written back into the cells that changed.

In the program a line stands where it stands in the file, as far as the file gives each line of a cell its own: what names a line
is right in both. A cell lies between two comments; what lies outside of cells is `#`. Magics and shell lines (notebook_magics.py)
are calls there. The file is never written anew: only the strings of changed cells are, and of these only the lines that changed.
"""

from __future__ import annotations

import ast
import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from codemods.files.notebook_json import Cell, Literal, Strings, read_cells
from codemods.files.notebook_magics import STANDS_FOR, Magic, as_python, found_in, is_not_python
from codemods.files.source import BOM, SourceModule, Unreadable, parse_text
from codemods.files.text_file import NOTEBOOK, UNREADABLE
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_HEAD = "#= notebook =#\n"
_UNREADABLE = f"{UNREADABLE.decode()}\n#"
_BEGIN, _END = lazy(r"^#= cell (\d+) =#$", re.M), "#= end of the cell =#"
_MARK = lazy(r"^#= (?:cell \d+|end of the cell) =#$", re.M)
_LONE_RETURN = lazy(r"\r(?!\n)")
# A notebook without any of these has no word of training on several processes; most are plots and data, megabytes of them.
_WORDS = (b"torch", b"lightning", b"accelerate", b"transformers", b"deepspeed", b"horovod")


@record
class Code:
    """A code cell as it stands in the program. python: its text with the magics as calls; magics: what these stand for."""

    cell: Cell
    python: str
    magics: tuple[Magic, ...]


@record
class Notebook:
    """A notebook that was read. text: of the file, without its byte order mark."""

    path: str
    mark: bytes
    text: str
    codes: tuple[Code, ...]


class NotebookModule(SourceModule):
    """The program of a notebook, as `python_of` makes it. Raises Unreadable, naming the cell."""

    def _parse(self) -> ast.Module:
        if self.text.startswith(_UNREADABLE):
            raise Unreadable(self.path, self.text[len(_UNREADABLE) :].strip())
        try:
            return parse_text(self.path, self.text)
        except Unreadable as error:
            raise Unreadable(self.path, _first_broken(self.path, self.text) or error.reason) from None

    def cell_at(self, line: int) -> tuple[int, int]:
        """(the cell among all cells, the line in it) of a line of the program; (0, 0) above the first."""
        at = bisect_right(self._cells, line - 1, key=lambda row: row[0]) - 1
        above, number = self._cells[at] if at >= 0 else (line, 0)
        return number, line - above

    @cached_property
    def _cells(self) -> tuple[tuple[int, int], ...]:
        return cells_of(self.data)


def is_program(data: bytes) -> bool:
    """True for what `python_of` makes of a notebook."""
    return data.startswith((_HEAD.encode(), UNREADABLE))


def python_of(path: str, data: bytes) -> bytes:
    """The program of a notebook. Bytes of another file are given back as they are.

    Empty for a notebook that says nothing of training and for one of another language; one comment, with the reason, for one that
    cannot be read.
    """
    if not path.endswith(NOTEBOOK):
        return data
    if not any(word in data for word in _WORDS):
        return b""
    try:
        notebook = read(path, data)
        return program(notebook).encode() if notebook else b""
    except UnicodeEncodeError:
        reason = "a cell holds half a character (a lone surrogate), which no file can hold"
    except Unreadable as error:
        reason = error.reason
    return f"{_UNREADABLE} {reason}\n".encode()


def read(path: str, data: bytes) -> Notebook | None:
    """The notebook that the bytes hold; None for one whose kernel is not Python. Raises Unreadable."""
    mark = BOM if data.startswith(BOM) else b""
    try:
        text = data[len(mark) :].decode()
    except UnicodeDecodeError:
        raise Unreadable(path, "a notebook is UTF-8, this is not") from None
    cells = read_cells(path, text)
    if cells is None:
        return None
    codes: list[Code] = []
    count = 0
    for cell in cells:
        if is_not_python(cell.source):
            continue
        if _MARK.search(cell.source):
            raise Unreadable(path, f"cell {cell.number} holds a comment of ddpfix's own, which marks where cells begin")
        if _LONE_RETURN.search(cell.source):
            raise Unreadable(path, f"cell {cell.number} ends lines with a carriage return alone")
        magics = found_in(cell.source, count)
        count += len(magics)
        codes.append(Code(cell, as_python(cell.source, magics), magics))
    return Notebook(path, mark, text, tuple(codes))


# The program


def program(notebook: Notebook) -> str:
    """The code cells in order. A line stands where it does in the file, where there is room for it."""
    out = [_HEAD]
    at = 2  # the line that comes next
    lines = LineStarts(notebook.text)
    for code in notebook.codes:
        if not code.cell.source.strip():
            continue
        wanted = lines.of(code.cell.literals[0].start) - 2
        out.append("#\n" * (wanted - at))
        text = code.python if code.python.endswith("\n") else code.python + "\n"
        out.append(f"#= cell {code.cell.number} =#\n\n{text}\n{_END}\n")
        at = max(at, wanted) + 4 + len(split_lines(text))
    return "".join(out)


class LineStarts:
    """Where the lines of a text begin."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(m.end() for m in re.finditer(r"\r\n|\n|\r", text))]

    def of(self, at: int) -> int:
        return bisect_right(self.starts, at)

    def place(self, at: int) -> tuple[int, int]:
        line = self.of(at)
        return line, at - self.starts[line - 1]


def split_lines(text: str) -> list[str]:
    """Lines with their ends, broken as Python breaks them."""
    return io.StringIO(text, newline="").readlines()


def _parts(text: str) -> list[tuple[str, str]]:
    """(what stands above a cell, the cell's text between its two comments), and behind the last cell with an empty text."""
    out = []
    at = 0
    marks = list(_MARK.finditer(text))
    for begin, end in zip(marks[::2], marks[1::2], strict=False):
        out.append((text[at : begin.end()], text[begin.end() : end.start()]))
        at = end.start()
    return [*out, (text[at:], "")]


def cannot_be_written(module: SourceModule, new: str) -> str:
    """Why `new` cannot be written into the cells; "" where it differs from the program inside of them only, and in no magic."""
    before, after = _parts(module.text), _parts(new)
    if [above for above, _ in before] != [above for above, _ in after]:
        return f"{module.path}: the change goes over the border of a cell"
    for (above, old), (_, text) in zip(before, after, strict=True):
        if old != text and calls_of_magics(old) != calls_of_magics(text):
            cell = _BEGIN.findall(above)
            return f"{module.path}: cell {cell[-1] if cell else 0}: the change touches a magic or a shell line"
    return ""


def calls_of_magics(text: str) -> list[str]:
    """The lines that stand for magics, in order, with their indentation."""
    return [match.group() for match in STANDS_FOR.finditer(text)]


def _first_broken(path: str, text: str) -> str:
    """Which cell Python cannot read, and why; "" where each alone is Python."""
    for above, cell in _parts(text)[:-1]:
        try:
            parse_text(path, cell[2:])
        except Unreadable as error:
            return f"cell {_BEGIN.findall(above)[-1]}: {error.reason}"
    return ""


def cells_of(data: bytes) -> tuple[tuple[int, int], ...]:
    """(the line above its first, number) of each cell of a program, in order; cells are counted as a reader counts them."""
    if not data.startswith(_HEAD.encode()):
        return ()
    text = data.decode()
    lines = LineStarts(text)
    return tuple((lines.of(m.start()) + 1, int(m.group(1))) for m in _BEGIN.finditer(text))


# Writing


def written(path: str, data: bytes, new: bytes) -> bytes:
    """The file with the cells as the program `new` has them. Raises Unreadable.

    data: the file's bytes. Bytes of another kind of file are what `new` is.
    """
    if not path.endswith(NOTEBOOK):
        return new
    notebook = read(path, data)
    if notebook is None:
        raise Unreadable(path, "this is no notebook of Python")
    text = new.decode()
    cells = {int(_BEGIN.findall(above)[-1]): part for above, part in _parts(text)[:-1]}
    out: list[str] = []
    at = 0
    strings = Strings(notebook.text, [c.cell for c in notebook.codes])
    for code in notebook.codes:
        if code.cell.number not in cells:
            continue
        source = _source(path, code, cells[code.cell.number])
        if source != code.cell.source:
            out += [notebook.text[at : code.cell.start], _value(code.cell, source, notebook.text, strings)]
            at = code.cell.end
    return notebook.mark + "".join([*out, notebook.text[at:]]).encode()


def _source(path: str, code: Code, part: str) -> str:
    """The text of the cell out of its part of the program, which has an empty line above and below, and a line end."""
    text = part.removeprefix("\n").removeprefix("\n")
    had_end = code.python.endswith("\n")
    if text.endswith("\n\n"):  # what is removed at an end takes the empty line along
        text = text.removesuffix("\n")
    if text == (code.python if had_end else code.python + "\n"):
        return code.cell.source
    for magic in code.magics:
        lines = re.compile(rf"^{re.escape(magic.python)}(?=\r?$)", re.M)
        text, count = lines.subn(lambda _, m=magic: m.source, text)  # type: ignore[misc]
        if count != 1:
            raise Unreadable(path, f"cell {code.cell.number}: the change touches a magic or a shell line")
    if had_end:
        return text
    return text.removesuffix("\n").removesuffix("\r")


def _value(cell: Cell, source: str, text: str, strings: Strings) -> str:
    """The value of `source` in the file: a string where it was one, else a list of lines laid out as it was."""
    if not cell.listed:
        return strings.changed(cell.literals[0], source)
    from difflib import SequenceMatcher

    new = split_lines(source)
    pieces: list[str] = []
    old = [literal.value for literal in cell.literals]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces += [text[literal.start : literal.end] for literal in cell.literals[i1:i2]]
        else:
            pieces += _lines_in_place_of(cell.literals[i1:i2], new[j1:j2], strings)
    first, last = cell.literals[0], cell.literals[-1]
    head, tail = text[cell.start : first.start], text[last.end : cell.end]
    between = text[first.end : cell.literals[1].start] if len(cell.literals) > 1 else "," + (head[1:] or " ")
    return head + between.join(pieces) + tail if pieces else "[]"


def _lines_in_place_of(gone: Sequence[Literal], came: Sequence[str], strings: Strings) -> Iterator[str]:
    for i, line in enumerate(came):
        yield strings.changed(gone[i], line) if i < len(gone) else strings.literal(line)
