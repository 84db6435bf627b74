"""Constants as they are written out."""

from __future__ import annotations

import ast


def held_against(test: ast.expr) -> tuple[ast.expr, tuple[object, ...], bool] | None:
    """(what is compared, the literals, whether it is to be one of them): `kind == "a"`, `kind in ("a", "b")`, their opposites."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    operator, against = test.ops[0], test.comparators[0]
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        literals = [against]
    elif isinstance(operator, (ast.In, ast.NotIn)) and isinstance(against, (ast.Tuple, ast.List, ast.Set)):
        literals = against.elts
    else:
        return None
    values = tuple(one.value for one in literals if isinstance(one, ast.Constant))
    return (test.left, values, isinstance(operator, (ast.Eq, ast.In))) if len(values) == len(literals) else None


def is_none(node: ast.AST | None) -> bool:
    """True for a `None` that is written out."""
    return isinstance(node, ast.Constant) and node.value is None


def is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
