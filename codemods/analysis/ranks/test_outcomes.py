"""How a test can come out, by how its parts can: for what options and settings may be, and for the runs that a project shows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

Outcomes = frozenset[bool]
BOTH: Outcomes = frozenset({True, False})
OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


def outcomes(test: ast.expr, of_part: Callable[[ast.expr], Outcomes]) -> Outcomes:
    """of_part: how a part without `not`, `and` and `or` can come out."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return frozenset(not o for o in outcomes(test.operand, of_part))
    if not isinstance(test, ast.BoolOp):
        return of_part(test)
    parts = [outcomes(v, of_part) for v in test.values]
    stop = isinstance(test.op, ast.Or)
    if any(p == {stop} for p in parts):
        return frozenset({stop})
    return frozenset({not stop}) if all(p == {not stop} for p in parts) else BOTH


def compared(ask: Callable[[Any, Any], object], left: Iterable[object], right: Iterable[object]) -> Outcomes:
    """How a comparison of these values can come out; either way where they have no order."""
    others = tuple(right)
    try:
        return frozenset(bool(ask(a, b)) for a in left for b in others) or BOTH
    except TypeError:
        return BOTH
