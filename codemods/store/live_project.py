"""A project that stays while the texts of its files change, as in an editor: a change drops the answers that rest on it, and no
others.

Each answer of `memo` and `keep` is made with a note of what was asked meanwhile (`answer_sources`). There are two steps after a
change, since some answers rest on every file of the project. At once go those about the changed file and those that may hold
its nodes; what is kept of the rest of the project stays as it was, and is *stale*. `refresh` drops that, too.
"""

from __future__ import annotations

import ast
import functools
import re
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeVar

from codemods.api.evidence import Observed
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS
from codemods.store.answer_sources import Sources, modules_in
from codemods.store.asked_project import AskedProject
from codemods.store.programs import Reader, programs
from codemods.store.project import Project
from codemods.store.questions import Question, alone, may_add, rows

T = TypeVar("T")
MOST_HELD = 16_000_000  # bytes of source with their trees; an editor comes back to the same files, a check does not
_FILE, _QUERY, _FILLED_LATER = object(), object(), object()
_ALL = 1_000_000_000  # files


class Interrupted(BaseException):
    """Something more urgent waits. No `except Exception` on the way takes it for a defect; finished answers stay."""


class LiveProject(AskedProject):
    """interrupted: asked now and then; where it says yes, the work in hand ends with Interrupted."""

    asks_for_itself = True  # what a closure gets from it is noted

    def __init__(
        self,
        files: Iterable[str],
        read: Reader,
        *,
        modules: Mapping[str, SourceModule] | None = None,
        observed: Iterable[Observed] = (),
        targets: Mapping[str, str] | None = None,
        launched: bool = False,
    ) -> None:
        self._texts: dict[str, bytes] = {}
        self._asked: list[set[Hashable]] = []  # of each answer that is being made, what it has asked so far
        self._within: tuple[Hashable, ...] = ()  # the question about all files that is being answered
        self._sources = Sources()
        self._indexes: set[Hashable] = set()
        self._stale: set[Hashable] = set()
        self.interrupted: Callable[[], bool] = lambda: False
        disk = read
        super().__init__(
            files, lambda path: self._texts[path] if path in self._texts else disk(path),
            modules=modules, observed=observed, targets=targets, launched=launched,
        )  # fmt: skip

    # Changes

    def change(self, path: str, data: bytes) -> None:
        """From now on the file, one of the project, has these bytes. Answers that are kept may be stale until `refresh`."""
        before = self._seen(path)
        self._texts[path] = data
        self._original = programs(self._raw)
        if path.endswith(NOTEBOOK):
            self._corpora = {kinds: corpus for kinds, corpus in self._corpora.items() if NOTEBOOK not in kinds}
        else:
            self._changed[path] = data
        changed, original = self._changed, self._original
        self._read = lambda p: changed[p] if p in changed else original(p)
        if isinstance(module := self._modules.pop(path, None), SourceModule):
            self._held -= len(module.data)
        after = self._seen(path)
        touched = {(_FILE, path), _FILLED_LATER, *(q for q in self._sources if _is_touched(q, path, before, after))}
        reached = self._sources.reached_from(touched)
        stays = {k for k in reached if k in self._kept and k not in self._indexes and not _mentions(k, path)}
        self._stale |= stays
        self._drop(reached - stays)

    def refresh(self) -> None:
        """Drop what is stale, and what was made from it."""
        self._drop(self._stale | self._sources.reached_from(self._stale))
        self._stale = set()

    @property
    def is_stale(self) -> bool:
        return bool(self._stale)

    def _seen(self, path: str) -> bytes:
        return (self._text(path) if path.endswith(NOTEBOOK) else Project.read(self, path)) or b""

    def _drop(self, keys: set[Hashable]) -> None:
        for key in keys:
            self._memo.pop(key, None)
            self._kept.pop(key, None)
        self._indexes -= keys
        self._stale -= keys
        self._sources.forget(keys)

    def make_room(self) -> None:
        if self._held > MOST_HELD:
            self._drop_trees()

    # Answers

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        return self._answer(self._memo, key, build)

    def keep(self, key: Hashable, build: Callable[[], T]) -> T:
        return self._answer(self._kept, key, build)

    def _answer(self, table: dict[Hashable, object], key: Hashable, build: Callable[[], T]) -> T:
        if key not in table:
            if self.interrupted():
                raise Interrupted
            found: set[Hashable] = set(self._within)
            if self._within:
                self._indexes.add(key)
            self._asked.append(found)
            try:
                table[key] = build()
            finally:
                self._asked.pop()
            found.update((_FILE, m.path) for m in modules_in(build))
            found.update((_FILE, m.path) for m in modules_in(key))
            found.update((_FILE, p) for p in _texts_in(key) if p in self.files)
            if _is_filled_later(build, table[key]):
                found.add(_FILLED_LATER)
            found.discard(key)
            self._sources.add(key, found)
        self._note(key)
        return table[key]  # type: ignore[return-value]

    def _note(self, source: Hashable) -> None:
        if self._asked:
            self._asked[-1].add(source)

    # Questions

    def _file_asked(self, path: str) -> None:
        self._note((_FILE, path))

    def _all_asked(self, question: Question, ask: Callable[[], T]) -> T:
        """The answer is noted as changed only where what one file adds to it changes."""
        if question[0] == "using":
            question = (*question[:2], _ALL, None)  # in whichever files
        self._note((_QUERY, *question))
        before, self._within = self._within, ((_QUERY, *question),)
        self._asked.append(set())
        try:
            return ask()
        finally:
            self._asked.pop()
            self._within = before

    def _list_asked(self, question: Question, ask: Callable[[], T]) -> T:
        self._asked.append(set())  # it rests on the names of files alone, which do not change
        try:
            return ask()
        finally:
            self._asked.pop()

    def _matches(self, head: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, re.Match[bytes]]]:
        self._note((_QUERY, "matching", pattern))
        return super()._matches(head, pattern)


def _is_filled_later(build: Callable[[], object], value: object) -> bool:
    """True for a table, or an object with a state, into which others put what they find: that is not noted anywhere."""
    if not isinstance(build, (types.FunctionType, types.MethodType, functools.partial)):
        return True  # `dict`
    if isinstance(value, (dict, set, list)):
        return not value
    return hasattr(value, "__dict__") and not isinstance(value, (SourceModule, ast.AST, Enum, type, types.FunctionType))


def _mentions(key: Hashable, path: str) -> bool:
    return any(text == path for text in _texts_in(key)) or any(m.path == path for m in modules_in(key))


def _texts_in(key: Hashable) -> Iterator[str]:
    if isinstance(key, str):
        yield key
    elif isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from _texts_in(part)


def _is_touched(source: Hashable, path: str, before: bytes, after: bytes) -> bool:
    """True for a question about all files whose answer changes with the text of this one."""
    if not isinstance(source, tuple) or not source or source[0] is not _QUERY:
        return False
    question = source[1:]
    if question[0] == "matching":
        pattern = question[1]
        return path.endswith(PYTHON_KINDS) and _groups(pattern, before) != _groups(pattern, after)
    if not may_add(question, path, before) and not may_add(question, path, after):
        return False
    return rows(alone(path, before), question) != rows(alone(path, after), question)


def _groups(pattern: re.Pattern[bytes], data: bytes) -> list[tuple[bytes, ...]]:
    return [m.groups() for m in pattern.finditer(data)]
