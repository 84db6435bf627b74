"""Lines above a place that end each run before it: what they call refuses its arguments, or they read what is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.ranks.failing_statements import statement_fails
from codemods.files.source import SourceModule
from ddpfix.summary.needed_options import Program
from ddpfix.summary.option_tests import lacking

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST = 200


def ends_before(program: Program, module: SourceModule, node: ast.AST, given: Mapping[str, str | None]) -> bool:
    """True where a statement above the place, in its function, fails in every run with these options."""
    above = (s for n, s in enumerate(_above(program, module, node, given)) if n < _MOST)
    return any(statement_fails(program.project, module, s) for s in above)


def _above(program: Program, module: SourceModule, node: ast.AST, given: Mapping[str, str | None]) -> Iterator[ast.stmt]:
    """The statements that are run before it, those under a test that the options answer among them; none inside of a `try`."""
    inner: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, ast.Try):
            return
        for name in ("body", "orelse", "finalbody"):
            block = getattr(up, name, None)
            at = next((i for i, s in enumerate(block) if s is inner), None) if isinstance(block, list) else None
            if isinstance(block, list) and at is not None:
                yield from _run(program, module, block[:at], given)
        if isinstance(up, _FUNCTIONS):
            return
        inner = up


def _run(program: Program, module: SourceModule, block: list[ast.stmt], given: Mapping[str, str | None]) -> Iterator[ast.stmt]:
    for statement in block:
        if not isinstance(statement, ast.If):
            yield from [] if isinstance(statement, (*_FUNCTIONS, ast.Try)) else [statement]
            continue
        holds = not lacking(program, module, statement.test, given, holds=True)
        fails = not lacking(program, module, statement.test, given, holds=False)
        if holds != fails:  # both: some rank goes either way
            yield from _run(program, module, statement.body if holds else statement.orelse, given)
