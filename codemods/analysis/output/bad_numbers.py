"""What a printed line says of numbers: of a test of the rank's own batch, and of numbers that are none."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.names import dotted, last
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.rank_data import sees_batches
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def by_own_data(module: SourceModule, function: FunctionNode | ast.Module, run: Run) -> str:
    """What is assumed of a line under a test of numbers from this rank's batch: rank 0's may say no where another's say yes."""
    if isinstance(function, ast.Module) or not sees_batches(function):
        return ""
    for up in module.ancestors(run.first):
        if up is function:
            return ""
        if isinstance(up, (ast.If, ast.While)) and _reads_numbers(module, up.test):
            return f"assumes that rank 0 speaks for all: `{module.text_of(up.test)}` goes by each rank's own batch"
    return ""


def of_bad_numbers(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True under a test for numbers that are none, or with one inside: only the rank that has them can say so."""
    inside = [n for s in statements for n in walk(s)]
    return any(_asks_for_bad_numbers(n) for n in (*inside, *_within_function(module, statements[0])))


def reports_bad_numbers(project: Project, run: Run) -> bool:
    """True where a function that the run calls prints under such a test."""
    for effect in run.effects.output:
        home = project.module(effect.path)
        calls = [c for c in home.calls_named("print", "info") if c.lineno == effect.line] if home is not None else []
        if home is not None and any(of_bad_numbers(home, [home.statement_of(c)]) for c in calls):
            return True
    return False


def _within_function(module: SourceModule, statement: ast.stmt) -> Iterator[ast.AST]:
    """What stands round a statement in its function."""
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        yield up


def _asks_for_bad_numbers(node: ast.AST) -> bool:
    if not isinstance(node, (ast.If, ast.While)):
        return False
    return any(isinstance(n, ast.Call) and last(dotted(n.func)) in ("isnan", "isinf", "isfinite") for n in walk(node.test))


def _reads_numbers(module: SourceModule, test: ast.expr) -> bool:
    """True for a test of what was read out of a tensor: `.item()`, `.any()`."""
    given = [test, *(v for n in walk(test) if isinstance(n, ast.Name) for v in values_of(module, n))]
    called = [n.func for v in given for n in walk(v) if isinstance(n, ast.Call)]
    read = ("item", "any", "all", "tolist", "isnan", "isinf", "isfinite")
    return any(isinstance(f, ast.Attribute) and f.attr in read for f in called)
