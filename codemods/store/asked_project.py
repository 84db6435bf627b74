"""A project that is told what is asked of it: which files are read, and which questions about all files are put.

What is asked on the way to such an answer is no question of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from codemods.files.source import SourceModule
from codemods.store.import_targets import Resolved
from codemods.store.project import FEW, Project
from codemods.store.questions import Question

T = TypeVar("T")


class AskedProject(Project):
    """Two classes keep book: of a project that lives on (`live_project`), and of the judgement of a file (`traced_project`)."""

    @abstractmethod
    def _file_asked(self, path: str) -> None:
        """The contents of a file, or that it is not there, are about to be given."""

    @abstractmethod
    def _all_asked(self, question: Question, ask: Callable[[], T]) -> T:
        """`ask`, which answers a question about all files."""

    @abstractmethod
    def _list_asked(self, question: Question, ask: Callable[[], T]) -> T:
        """`ask`, which rests on the list of files alone."""

    # One file

    def module(self, path: str) -> SourceModule | None:
        self._file_asked(path)
        return super().module(path)

    def read(self, path: str) -> bytes | None:
        self._file_asked(path)
        return super().read(path)

    def raw(self, path: str) -> bytes | None:
        self._file_asked(path)
        return super().raw(path)

    def read_text(self, path: str) -> bytes | None:
        self._file_asked(path)
        return super().read_text(path)

    # All files

    def files_containing(self, word: bytes, *, kinds: tuple[str, ...] = (".py",)) -> tuple[str, ...]:
        ask = super().files_containing
        return self._all_asked(("containing", word, kinds), lambda: ask(word, kinds=kinds))

    def first_using(self, name: str, *, most: int, among: Collection[str] | None = None) -> tuple[str, ...]:
        ask = super().first_using
        if among is not None and len(among) <= FEW:
            return ask(name, most=most, among=among)  # files are read
        near = None if among is None else frozenset(among)
        return self._all_asked(("using", name, most, near), lambda: ask(name, most=most, among=near))

    def files_calling(self, name: str) -> tuple[str, ...]:
        ask = super().files_calling
        return self._all_asked(("calling", name), lambda: ask(name))

    def files_importing(self, stem: str) -> tuple[str, ...]:
        ask = super().files_importing
        return self._all_asked(("importing", stem), lambda: ask(stem))

    def aliases_at(self, name: str) -> tuple[tuple[str, str], ...]:
        ask = super().aliases_at
        return self._all_asked(("aliases", name), lambda: ask(name))

    def headers_naming(self, base: str, *, few: bool = True) -> Iterator[tuple[str, str]]:
        ask = super().headers_naming
        return iter(self._all_asked(("naming", base), lambda: tuple(ask(base, few=few))))

    def files_defining(self, name: str) -> frozenset[str]:
        ask = super().files_defining
        return self._all_asked(("defining", name), lambda: ask(name))

    # The list of files

    @property
    def files(self) -> frozenset[str]:
        return self._list_asked(("files",), lambda: self._files)

    @property
    def python_files(self) -> tuple[str, ...]:
        return self._list_asked(("files",), lambda: self._python_files)

    def resolved_above(self, dotted: str, importer: str) -> Resolved | None:
        ask = super().resolved_above
        return self._list_asked(("resolve", dotted, importer.rpartition("/")[0]), lambda: ask(dotted, importer))

    def folders_holding(self, name: str) -> tuple[str, ...]:
        ask = super().folders_holding
        return self._list_asked(("holding", name), lambda: ask(name))

    def has_file(self, path: str) -> bool:
        ask = super().has_file
        return self._list_asked(("has", path), lambda: ask(path))
