"""A project that notes what a judgement rests on, so that it need not be made again while all of that is as it was.

Each answer of `memo` and `keep` has a number, which stands for what was asked while it was made: files, questions about all
files, other answers. Who is given the answer later rests on the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

from codemods.store.asked_project import AskedProject
from codemods.store.file_facts import name_of
from codemods.store.project import Project
from codemods.store.questions import Question
from codemods.store.tables import Rest
from codemods.store.trace import FACT, FILE, NEVER, Trace, answered

T = TypeVar("T")


class Notes:
    """What is noted while a project is asked: of each number the question, or the numbers that the answer rests on."""

    def __init__(self) -> None:
        self._numbers: dict[Question, int] = {}
        self._same: dict[frozenset[int], int] = {frozenset(): 0}
        self._sources: dict[int, tuple[int, ...]] = {}
        self._open: list[set[int]] = []  # of each answer that is being made, what it rests on so far
        self._quiet = False

    def note(self, number: int) -> None:
        if self._open:
            self._open[-1].add(number)

    def ask(self, question: Question) -> None:
        if not self._quiet:
            number = self._numbers.get(question)
            if number is None:
                number = self._numbers[question] = len(self._numbers) + len(self._same)
            self.note(number)

    def begin(self) -> set[int]:
        self._open.append(set())
        return self._open[-1]

    def end(self) -> int:
        """The number of what was asked since `begin`, 0 for nothing; the answer round it rests on that, too."""
        asked = frozenset(self._open.pop())
        if len(asked) == 1:
            (number,) = asked
        else:
            known = self._same.get(asked)
            if known is None:
                known = self._same[asked] = len(self._numbers) + len(self._same)
                self._sources[known] = tuple(asked)
            number = known
        if number:
            self.note(number)
        return number

    def forget(self) -> None:
        """Nothing that was asked since `begin` counts."""
        self._open.pop()

    def trace(self, project: Project, roots: Mapping[str, int]) -> Trace:
        """What the answers with these numbers rest on. project: answers the questions, as it has done."""
        self._quiet = True
        questions = {number: (question, answered(project, question)) for question, number in self._numbers.items()}
        self._quiet = False
        return Trace(questions, dict(self._sources), dict(roots))


class TracedProject(AskedProject):
    """An overlay of it notes where the project itself does."""

    @cached_property
    def notes(self) -> Notes:
        return Notes()

    @cached_property
    def _memo_numbers(self) -> dict[Hashable, int]:
        return {}

    @cached_property
    def _kept_numbers(self) -> dict[Hashable, int]:
        return {}

    @property
    def _overlay(self) -> type[Project]:
        return TracedProject

    def with_overlay(self, new: Mapping[str, bytes]) -> Project:
        project = super().with_overlay(new)
        assert isinstance(project, TracedProject)
        project.notes = self.notes
        return project

    def traced(self, ask: Callable[[], T]) -> tuple[T, int]:
        """What `ask` gives, and the number of all that it has asked of this project."""
        self.notes.begin()
        try:
            found = ask()
        finally:
            number = self.notes.end()
        return found, number

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        return self._answer(self._memo, self._memo_numbers, key, build)

    def keep(self, key: Hashable, build: Callable[[], T]) -> T:
        return self._answer(self._kept, self._kept_numbers, key, build)

    def _answer(self, table: dict[Hashable, object], numbers: dict[Hashable, int], key: Hashable, build: Callable[[], T]) -> T:
        if key in numbers:
            self.notes.note(numbers[key])
        else:
            table[key], numbers[key] = self.traced(build)
        return table[key]  # type: ignore[return-value]

    def fact(self, fact: Callable[..., T], path: str, *more: str) -> T:
        ask = super().fact
        return self._all_asked((FACT, name_of(fact), path, *more), lambda: ask(fact, path, *more))

    @contextmanager
    def apart(self) -> Iterator[Rest]:
        rest = Rest(self.notes.begin())
        try:
            yield rest
        finally:
            rest.number, rest.so_far = self.notes.end(), ()

    def rests_on(self, rest: Rest) -> None:
        for number in (*rest.so_far, rest.number):
            if number:
                self.notes.note(number)

    def order_counts(self) -> None:
        self.notes.ask((NEVER,))

    def make_room(self) -> None:
        before = self._memo
        super().make_room()
        if self._memo is not before:
            self._memo_numbers = {}

    def _file_asked(self, path: str) -> None:
        self.notes.ask((FILE, path))

    def _all_asked(self, question: Question, ask: Callable[[], T]) -> T:
        self.notes.ask(question)
        self.notes.begin()
        try:
            return ask()
        finally:
            self.notes.forget()

    _list_asked = _all_asked
