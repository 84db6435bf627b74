"""Places of which a test lets only one run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.source import SourceModule


def are_other_arms(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """True where a test lets either of two places run: the body of an `if` and its `else`."""
    ways = {id(up): arm for up, arm in _arms(module, one)}
    return any({ways.get(id(up)), arm} == {"body", "orelse"} for up, arm in _arms(module, other))


def _arms(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.If | ast.IfExp, str]]:
    """The tests over a place, each with the arm of it that the place stands in."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)):
            yield up, _arm(up, below)
        below = up


def _arm(up: ast.If | ast.IfExp, below: ast.AST) -> str:
    for name in ("body", "orelse"):
        arm = getattr(up, name)
        if below is arm or (isinstance(arm, list) and any(s is below for s in arm)):
            return name
    return "test"
