"""What a test is put together from."""

from __future__ import annotations

import ast


def conjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts of `a and b`, which all hold where it does; any other test itself."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
