"""Curves of one rank: which of them are worth a word, and the one of a project that is told.

What rank 0 draws of its own batches while it trains is what most programs want, and nothing rests on it: readers who judged
such findings called none of them worth telling. Two are: the number of a whole epoch, which is read as that of the training set,
and one that stands beside a number that the same loop reduces, so that a log mixes both.
"""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file, may_show_ranks
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_roles import Role, state_of
from codemods.analysis.variance.number_words import is_number
from codemods.analysis.variance.numbers import Number, numbers_of_one_rank, weight
from codemods.data.rank_variance import BACKWARDS, BARS
from codemods.late_pattern import late
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

_TRAINS = b"backward"  # the loop whose curve is told stands in a file that trains
_LATEST = late(r"\[-\d+:\]")  # of the last ten steps: no number of an epoch
_NUMBERS = (b"loss", b"acc", b"metric", b"score", b"item()", b"avg", b"mean")


@record
class Shown:
    """What a file shows: numbers that are more than a curve, and curves that are worth a word."""

    numbers: tuple[Number, ...]
    curves: tuple[Number, ...]


def shown_in(project: Project, module: SourceModule) -> Shown:
    def build() -> Shown:
        found = numbers_of_one_rank(project, module)
        curves = (n for n in found if n.role is Role.CURVE and _is_worth_telling(project, module, n))
        return Shown(tuple(n for n in found if n.role is not Role.CURVE), tuple(curves))

    return project.memo(("shown numbers", module.path), build)


def told_curve(project: Project) -> tuple[str, int] | None:
    """Path and line of the curve that is told: that of the heaviest loop, the first of those that weigh the same."""

    def build() -> tuple[str, int] | None:
        found: list[tuple[tuple[int, ...], str, int]] = []
        for path in sorted(project.files_containing(_TRAINS)):
            data = project.read(path) or b""
            if is_test_file(path) or not any(word in data for word in _NUMBERS) or not may_show_ranks(project, path):
                continue
            if (module := project.module(path)) is None:
                continue
            found += [(weight(n), path, getattr(n.at, "lineno", 0)) for n in shown_in(project, module).curves]
        best = max((w for w, _, _ in found), default=())
        return next(((path, line) for w, path, line in found if w == best), None)

    return project.keep("told curve", build)


def reduced_beside(project: Project, module: SourceModule, number: Number) -> ast.Call | None:
    """A call in the loop of the number that makes another one everybody's."""
    loop = number.source.loop
    if loop is None or number.source.path != module.path:
        return None
    state = state_of(variance(project), module, loop)
    for call in (n for n in walk(loop) if isinstance(n, ast.Call)):
        met = state.met.get(id(call), ()) if state is not None else ()
        if any(m.carries and m.name not in BACKWARDS for m in met) and any(_names_number(a) for a in call.args):
            return call
    return None


def _is_worth_telling(project: Project, module: SourceModule, number: Number) -> bool:
    if number.value.mean and number.behind:
        return _LATEST.search(number.text) is None
    bar = isinstance(number.shown, ast.Call) and last(dotted(number.shown.func)) in BARS
    return not bar and reduced_beside(project, module, number) is not None


def _names_number(node: ast.expr) -> bool:
    return any(is_number(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)))
