"""Answers that `memo` and `keep` of a project are not made for, with what each rests on."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from codemods.store.project import Project

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Rest:
    """What an answer rests on; it says something to the project that gave it only.

    so_far: the numbers of what it rests on up to now, as long as it is worked out; number: that of all of it, afterwards.
    """

    __slots__ = ("number", "so_far")

    def __init__(self, so_far: Collection[int] = ()) -> None:
        self.number, self.so_far = 0, so_far


class Table(Generic[K, T]):
    """Answers that `memo` and `keep` are not made for: found several at a time, or while another one is being looked for.

    To be got from `memo` itself: `project.memo(key, lambda: Table(project))`.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[K, tuple[T, Rest]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._known

    def __getitem__(self, key: K) -> T:
        value, rest = self._known[key]
        self._project.rests_on(rest)
        return value

    def get(self, key: K) -> T | None:
        return self[key] if key in self._known else None

    def put(self, key: K, value: T, rest: Rest) -> T:
        """rest: what `apart` gave for the work that led to it."""
        self._known[key] = value, rest
        return value
