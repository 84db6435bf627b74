"""The block that a function is, under what stands round all of it: `with`, `try … finally: pass`, `if True`, `match … case _`."""

from __future__ import annotations

import ast

from codemods.analysis.variance.exits import takes_all
from codemods.files.source import FunctionNode


def is_idle(block: list[ast.stmt]) -> bool:
    """True for `pass`, `...` and texts, and for no statement at all."""
    return all(isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in block)


def whole_body(function: FunctionNode) -> list[ast.stmt]:
    """The statements of a function; where all of them stand in one block that is always run, those of the block."""
    block = function.body
    while True:
        rest = block[1:] if is_idle(block[:1]) else block
        inner = _always_run(rest[0]) if len(rest) == 1 else None
        if inner is None:
            return block
        block = inner


def _always_run(statement: ast.stmt) -> list[ast.stmt] | None:
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return statement.body
    if isinstance(statement, ast.If):
        always = isinstance(statement.test, ast.Constant) and statement.test.value is True
        return statement.body if always else None
    if isinstance(statement, ast.Try):
        return statement.body if not statement.handlers and not statement.orelse and is_idle(statement.finalbody) else None
    if isinstance(statement, ast.Match):
        first = statement.cases[0]
        return first.body if takes_all(first) else None
    return None
