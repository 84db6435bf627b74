"""Blocks that nobody passes: each way through them returns, raises or exits."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.data.rank_names import EXIT_CALLS

_EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def leaves(block: list[ast.stmt]) -> bool:
    """True for a block whose end is never passed: each way through it returns, raises or exits."""
    if not block:
        return False
    end = block[-1]
    if isinstance(end, ast.If):
        return leaves(end.body) and leaves(end.orelse)
    return isinstance(end, _EXITS) or is_end(end)


def is_end(node: ast.AST) -> bool:
    """True for `sys.exit()` and the like as a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and dotted(node.value.func) in EXIT_CALLS
