"""Samplers that are made for the training alone: `if distributed and training: sampler = DistributedSampler(data)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.loading.origins import Origin, handed_over
from codemods.analysis.model.literal_arguments import is_ruled_out
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import parameters
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 4  # functions that hand the mode on

_TRAINS = lazy(r"^_*(is_|for_|in_|do_)?train(ing)?(_mode)?$")
_MODE = lazy(r"^_*(mode|phase|split|stage|subset|partition|which|part|set)(_name)?$")


def is_of_training_alone(project: Project, sampler: Origin) -> bool:
    """True where a test for the training stands above the sampler, and a call makes a loader for something else.

    Where nobody calls it for anything else, an evaluation goes through the loader of the training.
    """
    function = sampler.module.function_of(sampler.node)
    if function is None or not any(_asks_for_training(test, wanted=wanted) for test, wanted in _tests_above(sampler)):
        return False
    asked = {n.id for test, _ in _tests_above(sampler) for n in ast.walk(test) if isinstance(n, ast.Name)}
    return any(
        is_ruled_out(sampler.module, sampler.node, {name: literal})
        for name in sorted(asked & set(parameters(function)))
        for literal in _literals(project, sampler.module, function, name, _DEPTH)
    )


def _literals(
    project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int
) -> Iterator[ast.Constant]:
    """What is written out for a parameter where the function is called, also through parameters of its callers."""
    for there, value in handed_over(project, module, function, name) if depth else ():
        caller = there.function_of(value) if isinstance(value, ast.Name) else None
        if isinstance(value, ast.Constant):
            yield value
        elif caller is not None and isinstance(value, ast.Name) and value.id in parameters(caller):
            yield from _literals(project, there, caller, value.id, depth - 1)


def _tests_above(sampler: Origin) -> Iterator[tuple[ast.expr, bool]]:
    """(test, what it came to) of each branch that the sampler stands in, up to its function."""
    below: ast.AST = sampler.node
    for up in sampler.module.ancestors(sampler.node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return
        if isinstance(up, ast.If) and below is not up.test:
            yield up.test, any(below is s for s in up.body)
        elif isinstance(up, ast.IfExp) and below is not up.test:
            yield up.test, below is up.body
        below = up


def _asks_for_training(test: ast.expr, *, wanted: bool) -> bool:
    """True where the test comes to `wanted` in the training only."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_for_training(test.operand, wanted=not wanted)
    if isinstance(test, ast.BoolOp):
        some = isinstance(test.op, ast.And) == wanted  # each operand came to `wanted`; else one of them did
        return (any if some else all)(_asks_for_training(v, wanted=wanted) for v in test.values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        asked, value = (test.left, test.comparators[0])
        if isinstance(asked, ast.Constant):
            asked, value = value, asked
        text = value.value if isinstance(value, ast.Constant) else None
        return text == "train" and wanted == isinstance(test.ops[0], ast.Eq) and bool(_MODE.search(last(dotted(asked))))
    return wanted and bool(_TRAINS.search(last(dotted(test))))
