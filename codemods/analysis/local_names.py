"""Whether a name means something else where it stands: a parameter, a name that a function or a comprehension binds."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import is_parameter
from codemods.files.source import FunctionNode, Import, SourceModule, walk_scope


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


def is_local_value(module: SourceModule, name: ast.Name) -> bool:
    """True where a function, lambda or comprehension round the read gives the name a value of its own: no import, no `def`.

    The default of a parameter, `def run(train=train)`, and what a comprehension goes through stand outside of that.
    """
    below: ast.AST = name
    for up in module.ancestors(name):
        if isinstance(up, ast.Lambda) and below is up.body:
            if any(a.arg == name.id for a in ast.walk(up.args) if isinstance(a, ast.arg)):
                return True
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(s is below for s in up.body):
            if bindings_in(module, up, name.id) and all(module.function_of(i.node) is not up for i in _imports(module, name)):
                return True
        elif isinstance(up, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            given = (n for g in up.generators for n in ast.walk(g.target))
            if not isinstance(below, ast.comprehension) and any(_binds(n, name.id) for n in given):
                return True
        below = up
    return False


def _imports(module: SourceModule, name: ast.Name) -> list[Import]:
    return module.imports.get(name.id, [])


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
