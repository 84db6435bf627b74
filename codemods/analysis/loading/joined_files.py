"""Counts of the ranks that come together through files: each rank writes its part, and one of them adds up all parts."""

from __future__ import annotations

import ast

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk, walk_scope

_READS = frozenset({"load", "loads", "read_json", "read_pickle"})
_WRITES = frozenset({"dump", "save", "savez", "to_pickle"})
_KEEPS_APART = frozenset({"append", "extend", "insert", "update"})  # rows of a list may be cut, keys of a dict are there once


def joined_by_files(module: SourceModule, scope: ast.AST) -> ast.Call | None:
    """The call that adds up the parts: `total.merge(pickle.load(part))` for each rank's number; None where there is none."""
    if not any(isinstance(n, ast.Call) and last(dotted(n.func)) in _WRITES for n in walk_scope(scope)):
        return None
    for loop in (n for n in walk_scope(scope) if isinstance(n, ast.For) and _goes_over_ranks(module, n.iter)):
        for node in walk_scope(loop):
            if (read := _read_in(node)) is not None and _adds_up(module, loop, node):
                return read
    return None


def _goes_over_ranks(module: SourceModule, node: ast.expr) -> bool:
    """True for `range(world_size)` and `range(1, world_size)`."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "range" or not 1 <= len(node.args) <= 2:
        return False
    return is_process_count_in(module, node.args[-1])


def _read_in(node: ast.AST) -> ast.Call | None:
    return node if isinstance(node, ast.Call) and last(dotted(node.func)) in _READS else None


def _adds_up(module: SourceModule, loop: ast.For, read: ast.AST) -> bool:
    """True where what is read is added to a sum, or handed to a method that may add it: at once, or under a name."""
    statement = next((up for up in (read, *module.ancestors(read)) if isinstance(up, ast.stmt)), None)
    uses = [read]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        uses = [n for s in loop.body for n in walk(s) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return any(_is_added(module, use, loop) for use in uses)


def _is_added(module: SourceModule, use: ast.AST, loop: ast.For) -> bool:
    for up in module.ancestors(use):
        if up is loop:
            return False
        if isinstance(up, ast.AugAssign):
            return isinstance(up.op, ast.Add) and any(n is use for n in walk(up.value))
        given = isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and any(a is use for a in up.args)
        if given and isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute):
            return isinstance(module.parent(up), ast.Expr) and up.func.attr not in _KEEPS_APART
    return False
