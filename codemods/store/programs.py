"""What a file of the project is read as: a notebook as the program in it, what is no Python as a text."""

from __future__ import annotations

from collections.abc import Callable

from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, READ_KINDS, TextFile

Reader = Callable[[str], bytes | None]


def kind_of(path: str) -> type[SourceModule]:
    if path.endswith(NOTEBOOK):
        from codemods.files.notebook import NotebookModule

        return NotebookModule
    return TextFile if path.endswith(READ_KINDS) else SourceModule


def program(path: str, data: bytes) -> bytes:
    """What an overlay holds of a file: of a notebook the program in it, if that is not what it was given."""
    if not path.endswith(NOTEBOOK):
        return data
    from codemods.files.notebook import is_program, python_of

    return data if is_program(data) else python_of(path, data)


def programs(read: Reader) -> Reader:
    """`read`, with the program in the place of a notebook; each is read once."""
    known: dict[str, bytes | None] = {}

    def reading(path: str) -> bytes | None:
        if not path.endswith(NOTEBOOK):
            return read(path)
        if path not in known:
            from codemods.files.notebook import python_of

            data = read(path)
            known[path] = None if data is None else python_of(path, data)
        return known[path]

    return reading
