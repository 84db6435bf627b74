"""The code cells of a notebook with the place of every string of their source, and such strings written the way the file does.

Only the frame is read here; outputs are passed over by the standard library's scanner, which is C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

from codemods.files.source import Unreadable
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_SPACE = lazy(r"[ \t\n\r]*")
_ESCAPE = lazy(r'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]|[^\\]', re.S)
_UPGRADE = "`jupyter nbconvert --to notebook --nbformat 4` writes it anew"
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


@record
class Literal:
    """A string of the file and where it stands, quotes included."""

    value: str
    start: int
    end: int

    def pieces(self, text: str) -> list[str]:
        """Each character as the file writes it."""
        return _ESCAPE.findall(text[self.start + 1 : self.end - 1])

    def places(self, text: str) -> Iterator[int]:
        """Where each character of the value stands in the file."""
        at = self.start + 1
        for piece in self.pieces(text):
            yield at
            at += len(piece)


@record
class Cell:
    """A code cell of Python. number: among all cells, from 1. start, end: of the value of `source`; listed: it is a list."""

    number: int
    literals: tuple[Literal, ...]
    start: int
    end: int
    listed: bool

    @property
    def source(self) -> str:
        return "".join([literal.value for literal in self.literals])


def read_cells(path: str, text: str) -> list[Cell] | None:
    """The code cells in order, None where their language is not Python. Raises Unreadable."""
    try:
        top, _ = _mapping(text, _skip(text, 0))
        if _skip(text, _) != len(text):
            raise ValueError("something stands behind its end", _)
        return _cells(path, text, top)
    except (StopIteration, IndexError) as error:
        at = error.value if isinstance(error, StopIteration) and isinstance(error.value, int) else len(text)
        raise Unreadable(path, f"line {_line(text, at)}: this is no JSON") from None
    except json.JSONDecodeError as error:
        raise Unreadable(path, f"line {error.lineno}: this is no JSON: {error.msg}") from None
    except ValueError as error:
        said, at = error.args if len(error.args) == 2 else (str(error), 0)
        raise Unreadable(path, f"line {_line(text, at)}: {said}") from None
    except RecursionError:
        raise Unreadable(path, "its JSON is nested too deeply") from None


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _cells(path: str, text: str, top: dict[str, tuple[int, int]]) -> list[Cell] | None:
    version = _value(text, top.get("nbformat"))
    if "worksheets" in top or (isinstance(version, int) and version < 4):
        raise Unreadable(path, f"nbformat {version or 3}, which no tool of today writes: {_UPGRADE}")
    if "cells" not in top or not isinstance(version, int):
        raise Unreadable(path, "this is no notebook: it has no cells, or no nbformat")
    if version > 4:
        raise Unreadable(path, f"nbformat {version}, which is newer than what is known here: 4")
    if not _is_python(_value(text, top.get("metadata"))):
        return None
    return [cell for n, at in enumerate(_items(text, top["cells"][0]), 1) if (cell := _cell(text, at, n)) is not None]


def _value(text: str, place: tuple[int, int] | None) -> object:
    return _scan(text, place[0])[0] if place else None


def _is_python(metadata: object) -> bool:
    """False where the notebook names another language; one that names none is Python's."""
    if not isinstance(metadata, dict):
        return True
    language, kernel = metadata.get("language_info"), metadata.get("kernelspec")
    named = language.get("name") if isinstance(language, dict) else None
    named = named or (kernel.get("language") if isinstance(kernel, dict) else None)
    if isinstance(named, str) and named:
        return named.lower() in ("python", "ipython", "python3")
    name = kernel.get("name") if isinstance(kernel, dict) else None
    return not (isinstance(name, str) and name.lower().startswith(("ir", "julia", "bash", ".net", "scala", "sos", "javascript")))


def _cell(text: str, place: int, number: int) -> Cell | None:
    keys, _ = _mapping(text, place)
    if _value(text, keys.get("cell_type")) != "code" or "source" not in keys:
        return None
    metadata = _value(text, keys.get("metadata"))
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    if isinstance(editor, dict) and editor.get("languageId", "python") != "python":
        return None
    start, end = keys["source"]
    literals = tuple(_literal(text, at) for at in ([start] if text[start] == '"' else _items(text, start)))
    return Cell(number, literals, start, end, text[start] == "[")


def _literal(text: str, at: int) -> Literal:
    if text[at] != '"':
        raise ValueError("the source of a cell is no text", at)
    value, end = scanstring(text, at + 1, True)
    return Literal(value, at, end)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _mapping(text: str, at: int) -> tuple[dict[str, tuple[int, int]], int]:
    """(key -> where its value begins and ends, where the mapping ends)."""
    if text[at] != "{":
        raise ValueError("this is no notebook: a JSON object is expected here", at)
    out: dict[str, tuple[int, int]] = {}
    at = _skip(text, at + 1)
    while text[at] != "}":
        at = _comma(text, at) if out else at
        key = _literal(text, at)
        at = _skip(text, key.end)
        if text[at] != ":":
            raise ValueError("this is no JSON: a colon is expected here", at)
        start = _skip(text, at + 1)
        end = _end(text, start)
        out[key.value] = (start, end)
        at = _skip(text, end)
    return out, at + 1


def _items(text: str, at: int) -> list[int]:
    """Where the elements of a list begin."""
    if text[at] != "[":
        raise ValueError("a list is expected here", at)
    out: list[int] = []
    at = _skip(text, at + 1)
    while text[at] != "]":
        at = _comma(text, at) if out else at
        out.append(at)
        at = _skip(text, _end(text, at))
    return out


def _end(text: str, at: int) -> int:
    end: int = scanstring(text, at + 1, True)[1] if text[at] == '"' else _scan(text, at)[1]
    return end


def _comma(text: str, at: int) -> int:
    if text[at] != ",":
        raise ValueError("this is no JSON: a comma is expected here", at)
    return _skip(text, at + 1)


class Strings:
    """Writes strings as a notebook does: the characters that it escapes are escaped, what it writes plainly stays plain."""

    def __init__(self, text: str, cells: Sequence[Cell]) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._known: dict[str, str] = {}
        for literal in (literal for cell in cells for literal in cell.literals):
            if "\\" in text[literal.start : literal.end]:
                for char, piece in zip(literal.value, literal.pieces(text), strict=True):
                    if piece != char:
                        self._known.setdefault(char, piece)

    def literal(self, value: str) -> str:
        return f'"{"".join(map(self._written, value))}"'

    def _written(self, char: str) -> str:
        return self._known.get(char) or json.dumps(char, ensure_ascii=self._ascii)[1:-1]

    def changed(self, old: Literal, value: str) -> str:
        """`value` in the place of `old`: where both begin or end alike, the characters stay as the file has them."""
        pieces = old.pieces(self._text)
        most = min(len(old.value), len(value))
        head = next((i for i in range(most) if old.value[i] != value[i]), most)
        tail = next((i for i in range(most - head) if old.value[-1 - i] != value[-1 - i]), most - head)
        middle = map(self._written, value[head : len(value) - tail])
        return f'"{"".join([*pieces[:head], *middle, *pieces[len(pieces) - tail :]])}"'
