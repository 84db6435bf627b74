"""Ways out that stand deeper inside of the arm of a test that differs, under tests on which all ranks agree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.exits import end_of, leaving_of
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.values import Value
from codemods.analysis.variance.ways import Statements, Ways

Tests = tuple[ast.expr, ...]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def inner_exits(
    ways: Ways, node: ast.stmt, value: Value, arms: Sequence[list[ast.stmt]], rest: Statements, loop: Statements | None
) -> Iterator[Mismatch]:
    """`if isnan(loss): if first_step: continue`: the rank that leaves misses what the others come to; the first of these."""
    for arm in arms:
        if leaving_of(arm) is not None:
            continue
        for leaving, tests in _exits(arm, (), in_loop=False):
            if any(ways.test(t).differs or several_processes(ways.state.module, t) is not None for t in tests):
                continue  # that test is asked for itself
            round_of_loop = ways.meets(rest[: end_of(rest)])
            met = round_of_loop or ([] if isinstance(leaving, ast.Continue) else ways.meets(rest) or ways.meets(loop or ()))
            if met:
                yield Mismatch(Form.LEAVES, node, value, met[0], leaving)
                return


def _exits(body: Sequence[ast.stmt], tests: Tests, *, in_loop: bool) -> Iterator[tuple[ast.stmt, Tests]]:
    """(the statement, the tests over it) for each way out of the round or the function; in_loop: within a loop of the arm."""
    for statement in body:
        if isinstance(statement, ast.Return) or (isinstance(statement, (ast.Continue, ast.Break)) and not in_loop):
            yield statement, tests
        elif isinstance(statement, ast.If):
            for block in (statement.body, statement.orelse):
                yield from _exits(block, (*tests, statement.test), in_loop=in_loop)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _exits(statement.body, tests, in_loop=in_loop)
        elif isinstance(statement, _LOOPS):
            yield from _exits(statement.body, tests, in_loop=True)
