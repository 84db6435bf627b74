"""Of the numbers of one rank those that are told: of each loop over batches the one that weighs most."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_roles import Role
from codemods.analysis.variance.numbers import Number, all_numbers
from codemods.analysis.variance.reduced_beside import reduced_beside
from codemods.data.rank_variance import BARS, DRAWS, SHOWN_NUMBERS
from codemods.files.source import SourceModule
from codemods.runtime.record import replace
from codemods.store.project import Project


def numbers_of_one_rank(project: Project, module: SourceModule) -> tuple[Number, ...]:
    """Of each loop over batches the number that weighs most, where it is more than a curve.

    The losses and accuracies that rank 0 draws of its own batches while it trains are what most programs want, and nothing rests
    on them: of twenty-one losses, means of an epoch among them, maintainers would have wanted to know of two, and of five
    accuracies of an epoch of none. One that is drawn by the side of a number of all ranks is read as the same kind.
    """
    return project.memo(("numbers of one rank", module.path), lambda: tuple(_heaviest(project, module)))


def _heaviest(project: Project, module: SourceModule) -> list[Number]:
    analysis = variance(project)
    found = all_numbers(analysis, module)
    best: dict[tuple[str, int], Number] = {}
    deciding = {(x.path, x.line) for n in found if n.role is Role.DECIDES for x in n.value.chain}
    for number in found:
        if number.over is not None:  # the parts of the others are there: a place of its own, whatever else its loop gives
            if (place := (module.path, number.over.statement.lineno)) not in deciding:
                best.setdefault(place, number)
            continue
        known = number.source.loop is not None or (number.role is Role.CURVE and number.source.line)
        key = number.source.key if known else (module.path, getattr(number.at, "lineno", 0))
        if key not in best or _weight(number) > _weight(best[key]):
            best[key] = number
    curves = [n for n in best.values() if n.role is Role.CURVE]
    beside = [replace(n, role=Role.BESIDE, beside=b) for n in curves if (b := reduced_beside(analysis, module, n)) is not None]
    return _by_place([*(n for n in best.values() if n.role is not Role.CURVE), *beside])


def _by_place(found: Iterable[Number]) -> list[Number]:
    """Of those at one place the heaviest, in the order of the file."""
    places: dict[int, Number] = {}
    for number in sorted(found, key=_weight):
        places[getattr(number.at, "lineno", 0)] = number
    return [places[line] for line in sorted(places)]


def _weight(number: Number) -> tuple[int, int, int, int]:
    """What decides before what is told as a result, and that before a curve; of curves the mean of an epoch first, names last.

    What a word calls a loss or a metric comes before the mean of something else.
    """
    roles = (Role.CURVE, Role.BESIDE, Role.RESULT, Role.DECIDES)
    name = last(dotted(number.shown.func)) if isinstance(number.shown, ast.Call) else ""
    shown = 0 if name in BARS or number.names else 3 if name in DRAWS else 1 if name in SHOWN_NUMBERS else 2
    return roles.index(number.role), int(not number.unnamed), int(number.value.mean and number.behind), shown
