"""Constants as they are written out."""

from __future__ import annotations

import ast


def is_none(node: ast.AST | None) -> bool:
    """True for a `None` that is written out."""
    return isinstance(node, ast.Constant) and node.value is None


def is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
