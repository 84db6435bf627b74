"""Ways out that stand deeper inside of the arm of a test that differs, under tests on which all ranks agree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.exits import end_of, leaving_of
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.state import Meeting
from codemods.analysis.variance.values import Value
from codemods.analysis.variance.ways import Statements, Ways
from codemods.files.source import SourceModule

Tests = tuple[tuple[ast.expr, bool], ...]  # each with the answer by which its arm is taken
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def inner_exits(
    ways: Ways, node: ast.stmt, value: Value, arms: Sequence[list[ast.stmt]], rest: Statements, loop: Statements | None
) -> Iterator[Mismatch]:
    """`if isnan(loss): if first_step: continue`: the rank that leaves misses what the others come to; the first of these."""
    for arm in arms:
        if leaving_of(arm) is not None:
            continue
        for leaving, tests in _exits(arm, (), in_loop=False):
            if any(ways.test(t).differs or several_processes(ways.state.module, t) is not None for t, _ in tests):
                continue  # that test is asked for itself
            met = ways.meets(rest[: end_of(rest)])
            if not isinstance(leaving, ast.Continue):
                met = [*met, *ways.meets(rest), *ways.meets(loop or ())]
            taken = set(_answers(tests))
            missed = next((m for m in met if not _is_excluded(ways.state.module, m, taken)), None)
            if missed is not None:
                yield Mismatch(Form.LEAVES, node, value, missed, leaving)
                return


def _exits(body: Sequence[ast.stmt], tests: Tests, *, in_loop: bool) -> Iterator[tuple[ast.stmt, Tests]]:
    """(the statement, the tests over it) for each way out of the round or the function; in_loop: within a loop of the arm."""
    for statement in body:
        if isinstance(statement, ast.Return) or (isinstance(statement, (ast.Continue, ast.Break)) and not in_loop):
            yield statement, tests
        elif isinstance(statement, ast.If):
            for block, answer in ((statement.body, True), (statement.orelse, False)):
                yield from _exits(block, (*tests, (statement.test, answer)), in_loop=in_loop)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _exits(statement.body, tests, in_loop=in_loop)
        elif isinstance(statement, _LOOPS):
            yield from _exits(statement.body, tests, in_loop=True)


def _is_excluded(module: SourceModule, met: Meeting, taken: set[tuple[str, bool]]) -> bool:
    """True for a collective under `if synced:`, of an exit under `if not synced:`: those that leave would not come there."""
    path, line = met.steps[0].path, met.steps[0].line
    call = next((c for c in module.nodes(ast.Call) if c.lineno == line), None) if path == module.path else None
    if call is None:
        return False
    tests: list[tuple[ast.expr, bool]] = []
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and below is not up.test:
            tests.append((up.test, any(below is s for s in up.body)))
        below = up
    return any((text, not answer) in taken for text, answer in _answers(tests))


def _answers(tests: Iterable[tuple[ast.expr, bool]]) -> Iterator[tuple[str, bool]]:
    """(text, answer) of the parts that are known where each test has that answer."""
    for test, answer in tests:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from _answers([(test.operand, not answer)])
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is answer:
            yield from _answers((value, answer) for value in test.values)
        else:
            yield ast.unparse(test), answer
