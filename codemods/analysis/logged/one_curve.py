"""Curves of one rank: which of them are worth a word, one for each training loop.

What rank 0 draws of its own batches while it trains is what many programs want, and nothing rests on it: readers who judged
such findings called few of them worth telling. Three are: the number of a whole epoch, which is read as that of the training set,
one that stands beside a number that the same loop reduces, and one of a program that puts its other numbers together from all
ranks, or has a helper for it, so that its logs mix both.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.same_program import reached
from codemods.analysis.logged.reductions import reduction_of_program
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_roles import Role, state_of
from codemods.analysis.variance.number_words import is_number
from codemods.analysis.variance.numbers import Number, numbers_of_one_rank
from codemods.analysis.variance.paths import path_of
from codemods.data.rank_variance import BACKWARDS, BARS
from codemods.late_pattern import late
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk, walk_scope

_EVALUATED = late(r"(?<![a-z])(val|valid|validat\w*|eval\w*|test|dev)(?![a-z])", re.I)
_MADE_OF = 2  # a tensor of what was summed up from losses
_LOOKED_AT = 6
_QUESTIONS = late(r"^is|^any$|^all$|^len$|size$|shape$|count|numel")
_LATEST = late(r"\[-\d+:\]")  # of the last ten steps: no number of an epoch


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


def reduced_beside(project: Project, module: SourceModule, number: Number) -> ast.Call | None:
    """A call in the loop of the number that makes another one everybody's."""
    loop = number.source.loop
    if loop is None or number.source.path != module.path:
        return None
    state = state_of(variance(project), module, loop)
    for call in (n for n in walk(loop) if isinstance(n, ast.Call)):
        met = state.met.get(id(call), ()) if state is not None else ()
        if any(m.carries and m.name not in BACKWARDS for m in met) and any(_is_of_number(module, a) for a in call.args):
            return call
    return None


def _is_worth_telling(project: Project, module: SourceModule, number: Number) -> bool:
    if _gathers_features(project, module.path) or _LATEST.search(number.text):
        return False
    name = last(dotted(number.shown.func)) if isinstance(number.shown, ast.Call) else ""
    if number.value.mean and number.behind:
        return not name.startswith("plot")  # a picture of all steps
    if name in BARS or not number.source.trains:
        return False
    if name == "print" and _is_reduced_too(project, module, number):
        return False  # what is read is the curve; this line says that it goes on
    if reduced_beside(project, module, number) is not None:
        return True
    if any(_EVALUATED.search(text) for text in (number.text, *(x.text for x in number.value.chain))):
        return False  # of an evaluation, which may be what the program reduces
    return reduction_of_program(project, module.path) is not None


def _is_reduced_too(project: Project, module: SourceModule, number: Number) -> bool:
    """True where the function that prints a number also puts it together from all ranks, or the tensor that it is kept in."""
    body = module.function_of(number.shown) or module.tree
    if (state := state_of(variance(project), module, number.shown)) is None:
        return False
    names = {n.id for n in walk(ast.parse(number.text, mode="eval")) if isinstance(n, ast.Name)}
    kept = (a for a in walk_scope(body) if isinstance(a, ast.Assign) and isinstance(a.value, ast.Name) and a.value.id in names)
    held = {path_of(t) for a in kept for t in a.targets if isinstance(t, ast.Subscript)}
    for call in (n for n in walk_scope(body) if isinstance(n, ast.Call)):
        if any(m.carries and m.name not in BACKWARDS for m in state.met.get(id(call), ())):
            if any(isinstance(n, ast.Name) and n.id in names | held for a in call.args for n in walk(a)):
                return True
    return False


def _gathers_features(project: Project, path: str) -> bool:
    """True for a program whose loss may be over what all ranks gathered: each rank has the same then."""

    def gathers(near: str) -> bool:
        data = project.read(near) or b""
        if b"distributed.nn" in data and b"all_gather" in data:
            return True
        module = project.module(near) if b"all_gather" in data and b"Function)" in data else None
        return module is not None and any(
            any(last(dotted(b)) == "Function" for b in owner.bases)
            and any(isinstance(n, ast.Call) and last(dotted(n.func)).startswith("all_gather") for n in walk(owner))
            for owner in module.nodes(ast.ClassDef)
        )

    near = sorted(reached(project, path))
    return project.keep(("gathers features", path), lambda: any(gathers(p) for p in near))


def _is_of_number(module: SourceModule, node: ast.expr, depth: int = _MADE_OF) -> bool:
    """True for a loss or a metric by its name, and for what is made of one: `mean = loss.detach().clone()`.

    What asks something of it (`bad = torch.isnan(loss)`) is another thing.
    """
    parts = [n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    if any(map(is_number, parts)):
        return True
    names = [n for n in parts if isinstance(n, ast.Name)] if depth else []
    made = [b.value for name in names for b in bindings_of(module, name) if b.value is not None and not b.part]
    made += [a.value for name in names for a in module.nodes(ast.AugAssign) if _adds_to(module, a, name)]
    return any(not _asks(value) and _is_of_number(module, value, depth - 1) for value in made[:_LOOKED_AT])


def _adds_to(module: SourceModule, added: ast.AugAssign, name: ast.Name) -> bool:
    same = isinstance(added.target, ast.Name) and added.target.id == name.id
    return same and module.function_of(added) is module.function_of(name)


def _asks(value: ast.expr) -> bool:
    return any(
        isinstance(n, (ast.Compare, ast.BoolOp)) or (isinstance(n, ast.Call) and _QUESTIONS.search(last(dotted(n.func)) or ""))
        for n in walk(value)
    )
