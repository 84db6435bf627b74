"""What an answer was made from: files, questions about all files, other answers; and so which answers a change reaches.

What a build function was given does not pass the project again: `modules_in` finds the modules in its closure.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress

from codemods.files.source import SourceModule

DEPTH = 5  # a site in a reader in a closure; deeper objects have asked the project themselves
_LEAVES = (str, bytes, int, float, ast.AST, type, types.ModuleType, types.BuiltinFunctionType)


class Sources:
    """Edges from what was asked to the answers that rest on it."""

    def __init__(self) -> None:
        self._users: dict[Hashable, set[Hashable]] = {}
        self._sources: dict[Hashable, set[Hashable]] = {}

    def add(self, key: Hashable, found: set[Hashable]) -> None:
        """An answer that is made again keeps its old sources, too: other answers may still rest on the first."""
        self._sources.setdefault(key, set()).update(found)
        for source in found:
            self._users.setdefault(source, set()).add(key)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._users)

    def reached_from(self, changed: Iterable[Hashable]) -> set[Hashable]:
        """The answers that rest on one of these, however far."""
        reached: set[Hashable] = set()
        left = list(changed)
        while left:
            fresh = self._users.get(left.pop(), set()) - reached
            reached |= fresh
            left += fresh
        return reached

    def forget(self, keys: Iterable[Hashable]) -> None:
        for key in keys:
            for source in self._sources.pop(key, ()):
                users = self._users[source]
                users.discard(key)
                if not users:
                    del self._users[source]


def modules_in(value: object, depth: int = DEPTH) -> Iterator[SourceModule]:
    """The modules that a function, or a value, holds."""
    if isinstance(value, SourceModule):
        yield value
    elif depth and value is not None and not isinstance(value, _LEAVES):
        for part in _parts(value):
            yield from modules_in(part, depth - 1)


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # not filled yet
                yield cell.cell_contents
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, (tuple, list, set, frozenset)):
        yield from tuple(value)
    elif isinstance(value, dict):
        yield from (*value.keys(), *value.values())
    elif not getattr(value, "asks_for_itself", False):
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            yield from (getattr(value, name, None) for name in ((slots,) if isinstance(slots, str) else slots))
        yield from tuple(getattr(value, "__dict__", {}).values())
