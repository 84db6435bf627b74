"""Answers that ask for each other in cycles: each is kept for good only when it no longer hangs on who asked first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from codemods.store.project import Project
from codemods.store.tables import Rest, Table

T = TypeVar("T")
MOST_TIMES = 60  # that a heavy question is worked out: one came to 26; with a limit of six, answers hung on who asked first


class Settling(Generic[T]):
    """Question -> answer, for questions that may ask themselves on the way.

    One that is asked while it is being answered gets a stand-in. Every answer that rests on a stand-in holds for now: until the
    outermost question that it rests on has its answer. It is worked out again then, if somebody asks; a light one as soon as any
    question that it rests on has an answer. In a large cycle each member would so drop all others: after a few times the answer
    stays.
    """

    def __init__(self, project: Project) -> None:
        self._project = project  # is told on what files the answers rest
        self._done: Table[Hashable, T] = Table(project)
        # with the places of the open questions that each rests on, and whether it is light
        self._for_now: dict[Hashable, tuple[T, set[int], bool]] = {}
        self._files: dict[Hashable, Rest] = {}  # of those
        self._resting: defaultdict[int, dict[Hashable, None]] = defaultdict(dict)  # place -> those of them that may rest on it
        self._working: list[Rest] = []  # of the open questions
        self._places: dict[Hashable, int] = {}  # of the open questions: how many stand round each
        self._times: Counter[Hashable] = Counter()  # how often each was worked out
        self._rests: list[set[int]] = []  # for each of those, outermost first: the places that it rests on

    def answer(self, key: Hashable, build: Callable[[], T], stand_in: T, *, light: bool = False) -> T:
        if key in self._done:
            return self._done[key]
        if self.rests_on(key):
            return stand_in
        if (known := self._for_now.get(key)) is not None:
            self._rests[-1] |= known[1]
            self._project.rests_on(self._files[key])
            return known[0]
        place = self._places[key] = len(self._rests)
        self._rests.append(set())
        with self._project.apart() as files:
            self._working.append(files)
            try:
                found = build()
            finally:
                del self._places[key]
                self._times[key] += 1
                rests = self._rests.pop() - {place}
                self._closed(place, rests)
                self._working.pop()
        if rests:
            self._files[key] = files
            self._hold(key, found, rests, light)
            self._rests[-1] |= rests
        else:
            self._done.put(key, found, files)
        return found

    def _hold(self, key: Hashable, found: T, rests: set[int], light: bool) -> None:
        self._for_now[key] = (found, rests, light)
        for place in rests:
            self._resting[place][key] = None

    def _closed(self, place: int, rests: set[int]) -> None:
        """What rests on the question at that place, which has its answer, is dropped, or rests on what that answer rests on."""
        for key in self._resting.pop(place, ()):
            if key not in self._for_now or place not in self._for_now[key][1]:
                continue  # dropped since
            found, on, light = self._for_now.pop(key)
            left = (on - {place}) | rests
            if left and not light:
                self._hold(key, found, left, light)
            elif not light and self._times[key] >= MOST_TIMES:
                with self._project.apart() as files:
                    self._project.rests_on(self._files[key])
                    self._project.rests_on(self._working[place])
                self._done.put(key, found, files)

    def aside(self, key: Hashable, ask: Callable[[], object]) -> None:
        """Let a question be answered before another one, which does not rest on it for that."""
        if self.is_known(key):
            return
        noted = set(self._rests[-1]) if self._rests else set()
        ask()
        if self._rests:
            self._rests[-1] = noted

    def rests_like(self, key: Hashable) -> None:
        """Note that what is being answered rests on what an open question rested on up to now, but not on its end."""
        place = self._places[key]
        self._rests[-1] |= self._rests[place] - {place}
        self._project.rests_on(self._working[place])

    def is_known(self, key: Hashable) -> bool:
        return key in self._done or key in self._for_now or key in self._places

    def rests_on(self, key: Hashable) -> bool:
        """True for an open question: what is being answered rests on no more than its beginning, which is noted."""
        place = self._places.get(key)
        if place is not None:
            self._rests[-1].add(place)
            self._project.rests_on(self._working[place])
        return place is not None
