"""Whether a name means something else where it stands: a parameter, a name that a function or a comprehension binds."""

from __future__ import annotations

import ast

from codemods.analysis.names import is_parameter
from codemods.files.source import FunctionNode, SourceModule, walk_scope


def is_local(module: SourceModule, name: str, at: ast.AST, brought: frozenset[ast.alias] = frozenset()) -> bool:
    """True where a function, lambda or comprehension round `at` binds the name itself, and not by an import in `brought`."""
    if is_parameter(module, name, at):
        return True
    below: ast.AST = at
    for up in module.ancestors(at):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and below in up.body:
            if _binds_in(up, name, brought):
                return True
        elif isinstance(up, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            if any(_binds(n, name) for g in up.generators for n in ast.walk(g.target)):
                return True
        below = up
    return False


def _binds_in(function: FunctionNode, name: str, brought: frozenset[ast.alias]) -> bool:
    """True if the function itself binds the name; the targets of a comprehension are the comprehension's own."""
    inner: set[ast.AST] = set()
    for node in walk_scope(function):
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            inner.update(n for g in node.generators for n in ast.walk(g.target))
    return any(_binds(node, name, brought) for node in walk_scope(function) if node not in inner)


def _binds(node: ast.AST, name: str, brought: frozenset[ast.alias] = frozenset()) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((a.asname or a.name.partition(".")[0]) == name for a in node.names if a not in brought)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name
