"""Generators that give each rank as many, whatever its own share holds: without an end, or filled up to a number of all ranks."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk

_BELOW = (ast.Lt, ast.LtE, ast.NotEq)


def gives_as_many(module: SourceModule, node: ast.AST) -> bool:
    """True for a `yield` that another loop of the generator goes on for, once the rank's own items are given."""
    return _begins_anew(module, node) or _is_filled_up(module, node)


def _begins_anew(module: SourceModule, node: ast.AST) -> bool:
    """True in a `while True` that nothing leaves: the stream has no end, whatever one turn of it holds."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.While) and isinstance(up.test, ast.Constant) and up.test.value:
            return not any(isinstance(n, (ast.Break, ast.Return)) for n in walk(up))
    return False


def _is_filled_up(module: SourceModule, node: ast.AST) -> bool:
    """True for a `yield` in a loop that counts its rounds, where a loop behind it yields until the count is `bound`; in both.

    `while self.given < bound: self.given += 1; yield rows[:n]`: who wrote it gives each rank as many.
    """
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, (ast.For, ast.While)):
            loops = [s for s in getattr(module.parent(up), "body", []) if isinstance(s, (ast.For, ast.While))]
            place = loops.index(up) if up in loops else len(loops)
            behind = [s for s in loops[place + 1 :] if isinstance(s, ast.While)]
            if any(_fills(s, _counted(up)) for s in behind):
                return True
            if isinstance(up, ast.While) and any(_fills(up, _counted(s)) for s in loops[:place]):
                return True
    return False


def _fills(loop: ast.While, counts: set[str]) -> bool:
    test = loop.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _BELOW):
        return False
    yields = any(isinstance(n, ast.Yield) for n in walk(loop))
    return yields and dotted(test.left) in counts & _counted(loop)


def _counted(loop: ast.For | ast.While) -> set[str]:
    """What a loop adds one to in each round, `self.given += 1`."""
    return {
        dotted(s.target) for s in loop.body
        if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add) and isinstance(s.value, ast.Constant) and s.value.value == 1
    } - {""}  # fmt: skip
