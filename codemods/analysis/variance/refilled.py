"""Lists that are filled until they are long enough, and cut to that length: `while len(rows) < n: rows.extend(more())`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk


def is_refilled(module: SourceModule, node: ast.Subscript) -> bool:
    """True for `rows[:n]` behind a loop that `rows` leaves with at least `n` elements, where neither is given anew in between."""
    cut, name = node.slice, dotted(node.value)
    if not isinstance(cut, ast.Slice) or cut.lower is not None or cut.step is not None or cut.upper is None or not name:
        return False
    return _is_full(module, module.statement_of(node), name, ast.unparse(cut.upper))


def asks_if_full(module: SourceModule, node: ast.If) -> bool:
    """True for `if len(rows) >= n:` behind such a loop: so it always is."""
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.GtE):
        return False
    name = _measured(test.left)
    return bool(name) and _is_full(module, node, name, ast.unparse(test.comparators[0]))


def _is_full(module: SourceModule, here: ast.stmt, name: str, length: str) -> bool:
    for above in _above(module, here):
        if isinstance(above, ast.While) and _fills(above, name, length):
            return True
        if any(_is_given(n, name, length) for n in walk(above)):
            return False
    return False


def _above(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements in front of one, nearest first, out of tests too: a loop may come here again with what it has cut."""
    up: ast.AST | None = statement
    while isinstance(up, ast.stmt):
        block = module.block_of(up)
        yield from reversed(block[: block.index(up)])
        up = module.parent(up)
        if not isinstance(up, ast.If):
            return


def _is_given(node: ast.AST, name: str, length: str) -> bool:
    stored = isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)
    return stored and dotted(node) in (name, length)


def _fills(loop: ast.While, name: str, length: str) -> bool:
    """True for a loop that goes on while `name` has fewer elements, and ends in no other way than by an error."""
    test = loop.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt):
        return False
    ends = any(isinstance(n, ast.Break) for s in loop.body for n in walk(s))
    return _measured(test.left) == name and ast.unparse(test.comparators[0]) == length and not ends


def _measured(node: ast.expr) -> str:
    """`rows` of `len(rows)`."""
    counts = isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1
    return dotted(node.args[0]) if isinstance(node, ast.Call) and counts else ""
