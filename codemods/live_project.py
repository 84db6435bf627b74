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
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeVar

from codemods import project as plain
from codemods.answer_sources import Sources, modules_in
from codemods.corpus import alias_at, calls, is_imported, uses
from codemods.evidence import Observed
from codemods.project import Project, Resolved
from codemods.source import SourceModule
from codemods.text_file import NOTEBOOK, PYTHON_KINDS

T = TypeVar("T")
MOST_HELD = 16_000_000  # bytes of source with their trees; an editor comes back to the same files, a check does not
_FILE, _QUERY, _FILLED_LATER = object(), object(), object()
_WHOLE = frozenset({"headers", "matching"})


class Interrupted(BaseException):
    """Something more urgent waits. No `except Exception` on the way takes it for a defect; finished answers stay."""


class LiveProject(Project):
    """interrupted: asked now and then; where it says yes, the work in hand ends with Interrupted."""

    asks_for_itself = True  # what a closure gets from it is noted

    def __init__(
        self,
        files: Iterable[str],
        read: plain.Reader,
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
        self._original = plain._programs(self._raw)
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
            self._held = plain.MOST_HELD + 1
            super().make_room()

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

    # Questions about one file

    def module(self, path: str) -> SourceModule | None:
        self._note((_FILE, path))
        return super().module(path)

    def read(self, path: str) -> bytes | None:
        self._note((_FILE, path))
        return super().read(path)

    def raw(self, path: str) -> bytes | None:
        self._note((_FILE, path))
        return super().raw(path)

    def read_text(self, path: str) -> bytes | None:
        self._note((_FILE, path))
        return super().read_text(path)

    # Questions about all files: the answer is noted as changed only where what one file adds to it changes

    def _query(self, query: tuple[Hashable, ...], ask: Callable[[], T]) -> T:
        self._note((_QUERY, *query))
        before, self._within = self._within, ((_QUERY, *query),)
        self._asked.append(set())
        try:
            return ask()
        finally:
            self._asked.pop()
            self._within = before

    def files_containing(self, word: bytes, *, kinds: tuple[str, ...] = (".py",)) -> tuple[str, ...]:
        ask = super().files_containing
        return self._query(("containing", word, kinds), lambda: ask(word, kinds=kinds))

    def files_using(self, name: str, *, most: int, among: Collection[str] | None = None) -> tuple[str, ...] | None:
        ask = super().files_using
        return self._query(("using", name.encode()), lambda: ask(name, most=most, among=among))

    def files_calling(self, name: str) -> tuple[str, ...]:
        ask = super().files_calling
        return self._query(("calling", name.encode()), lambda: ask(name))

    def files_importing(self, stem: str) -> tuple[str, ...]:
        ask = super().files_importing
        return self._query(("importing", stem.encode("utf-8", "surrogateescape")), lambda: ask(stem))

    def aliases_of(self, name: str) -> tuple[str, ...]:
        ask = super().aliases_of
        return self._query(("aliases", name.encode()), lambda: ask(name))

    def class_headers(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        return self._query(("headers",), super().class_headers)

    def headers_naming(self, base: str) -> Iterator[tuple[str, str]]:
        ask = super().headers_naming
        return iter(self._query(("naming", base.encode()), lambda: tuple(ask(base))))

    def files_defining(self, name: str) -> frozenset[str]:
        ask = super().files_defining
        return self._query(("defining", name.encode()), lambda: ask(name))

    def _matches(self, head: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, re.Match[bytes]]]:
        self._note((_QUERY, "matching", pattern))
        return super()._matches(head, pattern)

    def resolve(self, dotted: str, importer: str) -> Resolved | None:
        self._asked.append(set())  # it rests on the names of files alone
        try:
            return super().resolve(dotted, importer)
        finally:
            self._asked.pop()


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
    kind, *words = source[1:]
    if kind == "containing":
        word, kinds = words
        return path.endswith(kinds) and (word in before) != (word in after)
    if not path.endswith(PYTHON_KINDS) or (kind not in _WHOLE and words[0] not in before and words[0] not in after):
        return False
    return _part(kind, words, before) != _part(kind, words, after)


def _part(kind: str, words: list[bytes], data: bytes) -> object:
    """What a file with these bytes adds to the answer."""
    if kind == "using":
        return uses(data, words[0])
    if kind == "calling":
        return calls(data, words[0])
    if kind == "importing":
        return any(is_imported(data, *m.span()) for m in re.finditer(re.escape(words[0]), data))
    if kind == "aliases":
        return [alias_at(data, *m.span()) for m in re.finditer(re.escape(words[0]), data)]
    if kind == "matching":
        return [m.groups() for m in words[0].finditer(data)]  # type: ignore[attr-defined]
    if kind == "defining":
        return any(m.group(1) == words[0] for m in plain._DEFINITION.finditer(data))
    headers = [m.groups() for m in plain._CLASS_HEADER.finditer(data)]
    return headers if kind == "headers" else [h for h in headers if words[0] in h[1]]
