"""Which `try` may catch what a node raises, and which exceptions a handler takes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule


def tries_over(module: SourceModule, node: ast.AST) -> Iterator[ast.Try | ast.TryStar]:
    """Each `try` of the function whose body holds the node, from the inside out; what runs in a lambda runs where that stands."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, (ast.Try, ast.TryStar)) and any(s is below for s in up.body):
            yield up
        below = up


def kinds_of(handler: ast.ExceptHandler) -> list[ast.expr]:
    """The exceptions that a handler names, as they are written; none for a bare `except`."""
    if handler.type is None:
        return []
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]


def takes(handler: ast.ExceptHandler, names: Collection[str]) -> bool:
    """True for a bare `except`, and where the handler names one of `names`."""
    return handler.type is None or any(last(dotted(kind)) in names for kind in kinds_of(handler))


def handler_over(module: SourceModule, node: ast.AST, names: Collection[str]) -> ast.ExceptHandler | None:
    """The innermost handler that takes one of `names` from the node."""
    return next((h for attempt in tries_over(module, node) for h in attempt.handlers if takes(h, names)), None)
