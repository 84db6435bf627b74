"""Names that mean another path further down: `cache` is that of the training set above, and that of the other one below."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.files.source import FunctionNode, SourceModule, line_of, walk


def values_above(module: SourceModule, function: FunctionNode, path: ast.expr) -> tuple[int, ...]:
    """How often each name of a path has got a value above it: two paths of one text are the same where this is."""
    bound = _bindings(module, function, path)
    return tuple(sum(line_of(node) < line_of(path) for node in nodes) for nodes in bound)


def means_another(module: SourceModule, function: FunctionNode, path: ast.expr, test: ast.If, place: ast.AST) -> bool:
    """True where a name of the path gets a value between a test and a place, on every way from the one to the other."""
    line, first, end = line_of(place), test.lineno, test.end_lineno or test.lineno
    if not function.lineno <= line <= (function.end_lineno or 0) or first <= line <= end:
        return False
    upper, lower, target = (end, line, place) if line > end else (line, first, test)
    around = {id(up) for up in (target, *module.ancestors(target))}
    for node in (n for nodes in _bindings(module, function, path) for n in nodes):
        if upper < line_of(node) < lower and any(id(s) in around for s in module.block_of(module.statement_of(node))):
            return True
    return False


def _bindings(module: SourceModule, function: FunctionNode, path: ast.expr) -> Iterator[list[ast.AST]]:
    for name in sorted({n.id for n in walk(path) if isinstance(n, ast.Name)}):
        yield [b.node for b in bindings_in(module, function, name) if not b.parameter and isinstance(b.node, ast.stmt)]
