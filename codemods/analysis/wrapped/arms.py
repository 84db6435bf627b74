"""Places of which a test lets only one run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule


def are_other_arms(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """True where a test lets either of two places run: the body of an `if` and its `else`."""
    ways = {id(up): arm for up, arm in _arms(module, one)}
    return any({ways.get(id(up)), arm} == {"body", "orelse"} for up, arm in _arms(module, other))


def is_bare(module: SourceModule, node: ast.AST, path: str) -> bool:
    """True in the `else` of `if hasattr(model, "module")`, which a wrapper does not come to."""
    return any(arm == "orelse" and _asks_for_module(up.test, path) for up, arm in _arms(module, node))


def _asks_for_module(test: ast.expr, path: str) -> bool:
    asks = isinstance(test, ast.Call) and dotted(test.func) == "hasattr" and len(test.args) == 2
    if not asks or not isinstance(test, ast.Call) or not isinstance(test.args[1], ast.Constant):
        return False
    return dotted(test.args[0]) == path and test.args[1].value == "module"


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
