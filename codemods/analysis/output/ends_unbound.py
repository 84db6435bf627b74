"""Branches behind which the run ends with NameError: the others bind a name that the code below reads on every way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.positions import behind
from codemods.analysis.unbound_names import given_otherwise, names_bound_by
from codemods.files.source import SourceModule, child_nodes, walk, walk_scope

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.IfExp, ast.BoolOp, *_COMPREHENSIONS)
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Assert, ast.Raise)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def ends_unbound(module: SourceModule, statement: ast.stmt) -> bool:
    """True in an arm that leaves a name unbound which another arm of the test binds and every way behind them reads."""
    inner = module.parent(statement)
    if not isinstance(inner, ast.If) or given_otherwise(module):
        return False
    arm = inner.body if any(s is statement for s in inner.body) else inner.orelse
    top = _first_test(module, inner)
    names = _bound(top) - {n for s in arm for n in _bound(s)}
    scope = module.function_of(statement)
    if not names or any(isinstance(s, _LEAVES) for s in arm):
        return False
    names -= set(_bound_elsewhere(module, scope or module.tree, top))
    return bool(names) and _is_read(module, top, names)


def _first_test(module: SourceModule, inner: ast.If) -> ast.If:
    """The `if` of the `elif` and `else` below it."""
    up = module.parent(inner)
    while isinstance(up, ast.If) and len(up.orelse) == 1 and up.orelse[0] is inner:
        inner, up = up, module.parent(up)
    return inner


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds, without those of functions and comprehensions in it."""
    found = set() if isinstance(node, (*_COMPREHENSIONS, ast.ExceptHandler)) else set(names_bound_by(node))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)):
        return found
    return found.union(*(_bound(child) for child in child_nodes(node)))


def _bound_elsewhere(module: SourceModule, scope: ast.AST, top: ast.If) -> Iterator[str]:
    """The names that may have a value in front of the test: bound above it, anywhere in a loop round it, or for all functions."""
    loops = [up for up in module.ancestors(top) if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and _is_in(scope, up)]
    for node in walk_scope(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) or getattr(node, "lineno", top.lineno) < top.lineno:
            yield from names_bound_by(node)
    for loop in loops:
        yield from _bound(loop)
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from (a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg))
    else:
        yield from (name for said in module.nodes(ast.Global) for name in said.names)
        if "*" in module.imports:
            yield from _bound(top)


def _is_in(scope: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in walk_scope(scope))


def _is_read(module: SourceModule, top: ast.If, names: set[str]) -> bool:
    """True where a statement that every way from the test comes to reads one of the names before it is bound."""
    block: ast.AST = top
    left = set(names)
    while isinstance(block, (ast.If, ast.With)):
        for statement in behind(module, block):
            if _reads(statement) & left:
                return True
            if any(isinstance(n, _LEAVES) for n in walk(statement)):
                return False
            left -= _bound(statement)
        up = module.parent(block)
        if up is None:
            return False
        block = up
    return False


def _reads(statement: ast.stmt) -> set[str]:
    """The names that a statement reads whenever it is run."""
    if isinstance(statement, _PLAIN):
        roots: list[ast.AST] = [statement]
    elif isinstance(statement, (ast.If, ast.While)):
        roots = [statement.test]
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        roots = [statement.iter]
    else:
        roots = []
    found: set[str] = set()
    while roots:
        node = roots.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if not isinstance(node, _LATER):
            roots.extend(child_nodes(node))
    return found
