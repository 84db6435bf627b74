"""The files that are open in the editor: their texts as bytes of a file, places in them, and new bytes as edits of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.workspace import PositionCodec

from codemods.api.findings import Finding, Span
from codemods.files.source import Unreadable, decode
from ddpfix import api
from ddpfix.lsp import places

CodeCell = types.NotebookCellKind.Code


class Document(Protocol):
    """uris: of what the editor shows of it; the first is the file's."""

    path: Path
    version: int

    @property
    def uris(self) -> Sequence[str]: ...

    def data(self) -> bytes:
        """The bytes of the file that the text stands for. Raises ValueError where it cannot be written as the file says."""

    def place(self, finding: Finding) -> tuple[str, types.Range]: ...

    def edits(self, data: bytes) -> list[tuple[str, int | None, list[types.TextEdit]]]:
        """(URI, version, edits) that bring the text to these bytes."""


class TextFile:
    """An open file that is no notebook."""

    def __init__(self, uri: str, path: Path, version: int, text: str, codec: PositionCodec) -> None:
        self.path, self.version = path, version
        self._uri, self._text, self._codec = uri, text, codec
        self._lines = places.split(text)

    @property
    def uris(self) -> Sequence[str]:
        return (self._uri,)

    def data(self) -> bytes:
        return api.encoded(self.path.name, self._text)

    def place(self, finding: Finding) -> tuple[str, types.Range]:
        return self._uri, places.first_line(finding.span, self._lines, self._codec)

    def edits(self, data: bytes) -> list[tuple[str, int | None, list[types.TextEdit]]]:
        found = places.edits(self._text, text_of(self.path.name, data), self._codec)
        return [(self._uri, self.version, found)] if found else []


class Cell:
    """A cell of an open notebook: its document, its version and its text."""

    def __init__(self, uri: str, kind: types.NotebookCellKind, version: int, text: str) -> None:
        self.uri, self.kind, self.version, self.text = uri, kind, version, text


class Notebook:
    """An open notebook. Its file is made of the cells, since the editor sends no other part of it."""

    def __init__(self, uri: str, path: Path, version: int, cells: Sequence[Cell], codec: PositionCodec) -> None:
        self.path, self.version = path, version
        self._uri, self._cells, self._codec = uri, cells, codec

    @property
    def uris(self) -> Sequence[str]:
        return (self._uri, *(c.uri for c in self._cells))

    def data(self) -> bytes:
        cells = [_cell(c) for c in self._cells]
        metadata = {"language_info": {"name": "python"}, "kernelspec": {"language": "python", "name": "python3"}}
        return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()

    def place(self, finding: Finding) -> tuple[str, types.Range]:
        cell = self._cells[finding.cell - 1] if 0 < finding.cell <= len(self._cells) else None
        if cell is None:
            return self._uri, places.whole_line(1)
        last = finding.cell_line + finding.span.end_line - finding.span.line
        span = Span(finding.cell_line, finding.span.column, last, finding.span.end_column)
        return cell.uri, places.first_line(span, places.split(cell.text), self._codec)

    def edits(self, data: bytes) -> list[tuple[str, int | None, list[types.TextEdit]]]:
        out: list[tuple[str, int | None, list[types.TextEdit]]] = []
        for cell, new in zip(self._cells, _sources(data), strict=True):
            if found := places.edits(cell.text, new, self._codec):
                out.append((cell.uri, cell.version, found))
        return out


def _cell(cell: Cell) -> dict[str, object]:
    if cell.kind is not CodeCell:
        return {"cell_type": "markdown", "metadata": {}, "source": cell.text}
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.text}


def _sources(data: bytes) -> Iterator[str]:
    for cell in json.loads(data)["cells"]:
        source = cell.get("source", "")
        yield source if isinstance(source, str) else "".join(source)


def text_of(name: str, data: bytes) -> str:
    """The text that an editor shows of these bytes."""
    try:
        return decode(name, data)[0]
    except Unreadable:
        return data.decode("utf-8", "replace")
