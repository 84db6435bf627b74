"""Questions about all files of a project, as values: each is answered in rows, and a row belongs to one file.

So the answer after a change of one file is the old one with other rows for that file, which the file says alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project

Question = tuple[object, ...]  # the kind, then the word that is looked for
Row = tuple[str, ...]  # the file, and for some kinds what it says


def asked_for(question: Question) -> bytes:
    """The word without which a file adds no row."""
    word = question[1]
    return word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")


def rows(project: Project, question: Question) -> tuple[Row, ...]:
    """The answer. That of "using" is cut off behind one more than its number of files."""
    kind, word, *more = question
    if kind == "containing":
        (kinds,) = more
        assert isinstance(word, bytes)
        assert isinstance(kinds, tuple)
        return _of(project.files_containing(word, kinds=kinds))
    assert isinstance(word, str)
    if kind == "using":
        most, among = more
        assert isinstance(most, int)
        assert among is None or isinstance(among, frozenset)
        return _of(project.first_using(word, most=most, among=among))
    if kind == "calling":
        return _of(project.files_calling(word))
    if kind == "importing":
        return _of(project.files_importing(word))
    if kind == "defining":
        return _of(sorted(project.files_defining(word)))
    if kind == "aliases":
        return project.aliases_at(word)
    assert kind == "naming", kind
    return tuple(sorted({*project.headers_naming(word, few=False)}))


def _of(paths: Iterable[str]) -> tuple[Row, ...]:
    return tuple([(path,) for path in paths])


def alone(path: str, data: bytes | None) -> Project:
    """A project of which the file is all (None: it is not there): asked the same, it gives the rows of the file."""
    return Project.of({path: data} if data is not None else {})


def may_add(question: Question, path: str, data: bytes | None) -> bool:
    """False where the file holds no row of the answer for sure; of a notebook other bytes are looked at than it holds."""
    return data is not None and (path.endswith(NOTEBOOK) or asked_for(question) in data)
