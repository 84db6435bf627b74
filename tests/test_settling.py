"""Answers that ask for each other in cycles: what is kept for good does not hang on who asked first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from codemods.analysis.variance.settling import Settling
from codemods.store.project import Project

# name -> the names that it asks for; an answer is the set of all names that were reached
_GRAPH = {"a": "b", "b": "ca", "c": "d", "d": "b", "e": "ad"}


def _asker(*, light: bool = False) -> Callable[[str], frozenset[str]]:
    settling: Settling[frozenset[str]] = Settling(Project.of({}))

    def ask(name: str) -> frozenset[str]:
        def build() -> frozenset[str]:
            return frozenset({name}).union(*(ask(other) for other in _GRAPH[name]))

        return settling.answer(name, build, frozenset({name}), light=light)

    return ask


def test_every_order_of_questions_gives_the_same_answers() -> None:
    for light in (False, True):
        answers = set()
        for order in permutations(_GRAPH):
            ask = _asker(light=light)
            for name in order:
                ask(name)
            answers.add(tuple(ask(name) for name in sorted(_GRAPH)))
        assert answers == {tuple(frozenset(reached) for reached in ("abcd", "abcd", "abcd", "abcd", "abcde"))}


def test_an_answer_outside_of_cycles_is_worked_out_once() -> None:
    settling: Settling[int] = Settling(Project.of({}))
    built: list[str] = []

    def ask(name: str, *others: str) -> int:
        def build() -> int:
            built.append(name)
            return 1 + sum(ask(other) for other in others)

        return settling.answer(name, build, 0)

    assert ask("top", "left", "right") == 3
    assert ask("left") == ask("right") == 1
    assert built == ["top", "left", "right"]
    assert settling.is_known("left")
    assert not settling.is_known("other")
