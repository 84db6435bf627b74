"""Curves of one rank: a project has many, and one of them says all that is to be said of them."""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file, may_show_ranks
from codemods.analysis.logged.step_curves import StepCurve, step_curves
from codemods.analysis.variance.number_roles import Role
from codemods.analysis.variance.numbers import Number, numbers_of_one_rank, weight
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule

_TRAINS = (b"backward", b"training_step")  # the loop whose curve is told stands in a file that trains
_NUMBERS = (b"loss", b"acc", b"metric", b"score", b"item()", b"avg", b"mean")


@record
class Shown:
    """What a file shows: numbers that are more than a curve, curves that a call draws, and those that Lightning draws."""

    numbers: tuple[Number, ...]
    curves: tuple[Number, ...]
    drawn: tuple[StepCurve, ...]


def shown_in(project: Project, module: SourceModule) -> Shown:
    """The numbers of one rank of a file; a LightningModule that draws its curve is not told of a second one."""

    def build() -> Shown:
        drawn = tuple(step_curves(project, module)) if module.holds(b"training_step") else ()
        owners = [owner for curve in drawn if (owner := module.class_of(curve.call)) is not None]
        found = numbers_of_one_rank(project, module)
        curves = (n for n in found if n.role is Role.CURVE and module.class_of(n.shown) not in owners)
        return Shown(tuple(n for n in found if n.role is not Role.CURVE), tuple(curves), drawn)

    return project.memo(("shown numbers", module.path), build)


def told_curve(project: Project) -> tuple[str, int] | None:
    """Path and line of the curve that is told: that of the heaviest loop, the first of those that weigh the same."""

    def build() -> tuple[str, int] | None:
        found: list[tuple[tuple[int, ...], str, int]] = []
        for path in sorted({p for word in _TRAINS for p in project.files_containing(word)}):
            data = project.read(path) or b""
            if is_test_file(path) or not any(word in data for word in _NUMBERS) or not may_show_ranks(project, path):
                continue
            if (module := project.module(path)) is None:
                continue
            shown = shown_in(project, module)
            found += [(weight(n), path, getattr(n.at, "lineno", 0)) for n in shown.curves]
            found += [((0, 0, 1), path, c.call.lineno) for c in shown.drawn]
        best = max((w for w, _, _ in found), default=())
        return next(((path, line) for w, path, line in found if w == best), None)

    return project.keep("told curve", build)
