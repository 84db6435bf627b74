"""What a test comes to where a caller's literals decide it: `stage == "val"`, `not train`, `mode in ("val", "test")`."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def answer_of(test: ast.expr, known: Mapping[str, object]) -> bool | None:
    """True or False, None where the known names do not settle it."""
    if isinstance(test, ast.Name) and test.id in known:
        return bool(known[test.id])
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = answer_of(test.operand, known)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = [answer_of(value, known) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    return _comparison(test, known) if isinstance(test, ast.Compare) and len(test.ops) == 1 else None


def _comparison(test: ast.Compare, known: Mapping[str, object]) -> bool | None:
    left, right = test.left, test.comparators[0]
    if not isinstance(left, ast.Name) or left.id not in known:
        return None
    value, operator = known[left.id], test.ops[0]
    if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        if not all(isinstance(e, ast.Constant) for e in right.elts):
            return None
        inside = value in [e.value for e in right.elts if isinstance(e, ast.Constant)]
        return inside == isinstance(operator, ast.In)
    if not isinstance(right, ast.Constant):
        return None
    if isinstance(operator, (ast.Eq, ast.Is)):
        return value == right.value
    return value != right.value if isinstance(operator, (ast.NotEq, ast.IsNot)) else None
