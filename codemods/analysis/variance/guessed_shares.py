"""Numbers that are the rank's own by a guess alone: a name says that a loader shares out, or a text chooses the loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.variance.analysis import Analysis
from codemods.analysis.variance.number_roles import Source
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.values import Cause, How, Kind, Link, Proof, Value
from codemods.files.source import SourceModule, called_name, walk

_OF_LOADER = "gives each rank its own batches"


def is_guess(analysis: Analysis, value: Value, source: Source) -> bool:
    """True where only a name says that a loader shares out, or each rank goes through the whole set in an order of its own."""
    origin = value.origin
    if origin is None:
        return True
    if source.trains:  # the batches of a training are the rank's own
        return origin.by_name and _OF_LOADER not in origin.text
    if source.loop is None:
        return origin.how is not How.OF_STEP or origin.by_name
    return not goes_through_share(analysis, source)


def goes_through_share(analysis: Analysis, source: Source) -> bool:
    """True where it is seen that the loader of the loop gives each rank its own part of the set."""
    over = source.over
    if over is None or not over.differs or over.cause is not Cause.DATA or over.origin is None:
        return False
    if over.origin.by_name or over.origin.how is How.WHOLE:
        return False
    return not _is_one_of_modes(analysis, over.origin) and not _is_one_of_phases(analysis, over.origin)


def _is_one_of_modes(analysis: Analysis, origin: Link) -> bool:
    """`if mode == "train": self.data = DataLoader(...) elif ...`: a text that is not followed decides which loader it is.

    Where the other loaders are shared out, too, it does not matter which one it is.
    """
    module = analysis.project.module(origin.path)
    for made in module.nodes(ast.Assign) if module is not None else ():
        if module is None or not made.lineno <= origin.line <= (made.end_lineno or made.lineno):
            continue
        path = path_of(made.targets[0])
        others = [a for a in module.nodes(ast.Assign) if a is not made and path and path_of(a.targets[0]) == path]
        others = [a for a in others if not _is_shared_out(analysis, module, a.value)]
        for up in (u for u in module.ancestors(made) if isinstance(u, ast.If)):
            texts = any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in walk(up.test))
            arms = [{id(n) for s in arm for n in (s, *walk(s))} for arm in (up.body, up.orelse)]
            if texts and any((id(made) in arms[0]) != (id(a) in arms[0]) and id(a) in arms[0] | arms[1] for a in others):
                return True
    return False


def _is_one_of_phases(analysis: Analysis, origin: Link) -> bool:
    """`for phase in ("train", "val"): sampler = DistributedSampler(...) if phase == "train" else None`: which one is whole?"""
    module = analysis.project.module(origin.path)
    calls = [c for c in module.nodes(ast.Call) if c.lineno == origin.line] if module is not None else []
    for call in (c for c in calls if called_name(c).endswith("DataLoader")):
        assert module is not None
        loops = [up for up in module.ancestors(call) if isinstance(up, ast.For)]
        phases = {n.id for loop in loops for n in (loop.target, *walk(loop.target)) if isinstance(n, ast.Name)}
        given = [k.value for k in call.keywords if k.arg in ("sampler", "batch_sampler")]
        if any(n.id in phases for g in given for test in _deciding(module, g) for n in walk(test) if isinstance(n, ast.Name)):
            return True
    return False


def _deciding(module: SourceModule, sampler: ast.expr) -> Iterator[ast.expr]:
    """The tests that decide which sampler it is, where it is written and where its name is given it."""
    bound = [(b.node, b.value) for b in bindings_of(module, sampler)] if isinstance(sampler, ast.Name) else []
    if isinstance(sampler, ast.Subscript):  # `samplers[phase]`
        entry = ast.unparse(sampler)
        bound = [(a, a.value) for a in module.nodes(ast.Assign) if ast.unparse(a.targets[0]) == entry]
    for value in (sampler, *(v for _, v in bound if v is not None)):
        yield from (n.test for n in (value, *walk(value)) if isinstance(n, ast.IfExp))
    for node, _ in bound:
        yield from (up.test for up in module.ancestors(node) if isinstance(up, ast.If))


def _is_shared_out(analysis: Analysis, module: SourceModule, loader: ast.expr) -> bool:
    value = analysis.value(module, loader)
    told = value.origin is not None and not value.origin.by_name
    return value.kind is Kind.LOADER and value.cause is Cause.DATA and value.proof is Proof.PROVEN and told
