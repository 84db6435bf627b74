"""Counts of all ranks that only weigh a mean loss: a sample that is repeated moves it by less than the batches do."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk_scope

_SHOWS = frozenset({"print", "info", "debug", "log", "write"})


def only_weighs_losses(module: SourceModule, call: ast.Call) -> bool:
    """True where what `call` sums over the ranks divides sums of losses behind it, and is at most shown besides."""
    counted = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensor"), None)
    if not isinstance(counted, ast.Name):
        return False
    scope = module.function_of(call) or module.tree
    names = (n for n in walk_scope(scope) if isinstance(n, ast.Name) and n.id == counted.id and isinstance(n.ctx, ast.Load))
    reads = [n for n in names if n.lineno > (call.end_lineno or call.lineno)]
    divides = [_divides_a_loss(module, n) for n in reads]
    return any(divides) and all(d or _is_shown(module, n) for d, n in zip(divides, reads, strict=True))


def _divides_a_loss(module: SourceModule, read: ast.Name) -> bool:
    below: ast.AST = read
    for up in module.ancestors(read):
        if isinstance(up, ast.BinOp):
            return isinstance(up.op, ast.Div) and up.right is below and "loss" in module.text_of(up.left).lower()
        if not isinstance(up, (ast.Attribute, ast.Call)) or (isinstance(up, ast.Call) and up.args):
            return False
        below = up
    return False


def _is_shown(module: SourceModule, read: ast.Name) -> bool:
    calls = (up for up in module.ancestors(read) if isinstance(up, ast.Call))
    return any(last(dotted(c.func)) in _SHOWS and isinstance(module.parent(c), ast.Expr) for c in calls)
