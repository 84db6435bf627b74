"""The values each name is given, by the function it is given them in: one pass over a file, then look-ups."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule

Scope = ast.AST | None


class Bindings:
    """What the names of a file are bound to.

    by_function: (function or None, name) -> values of plain names. by_class: (class, "self.name") -> values of attributes.
    A loop over a tuple or list that is written out gives its elements, any other loop what it goes through.
    """

    def __init__(self, module: SourceModule) -> None:
        self.by_function: dict[tuple[Scope, str], list[ast.expr]] = {}
        self.by_class: dict[tuple[Scope, str], list[ast.expr]] = {}
        self._function_of, self._class_of = module.function_of, module.class_of
        for assign in module.nodes(ast.Assign):
            for target in assign.targets:
                self._bind(target, assign.value, assign)
        for noted in module.nodes(ast.AnnAssign):
            self._bind(noted.target, noted.value, noted)
        for walrus in module.nodes(ast.NamedExpr):
            self._bind(walrus.target, walrus.value, walrus)
        for loop in [*module.nodes(ast.For), *module.nodes(ast.AsyncFor)]:
            self._loop(loop.target, loop.iter, loop)  # type: ignore[attr-defined]
        for inner in module.nodes(ast.comprehension):
            self._loop(inner.target, inner.iter, inner)
        for item in module.nodes(ast.withitem):
            if item.optional_vars is not None:
                self._bind(item.optional_vars, item.context_expr, item)
        del self._function_of, self._class_of  # they hold the module, which is the key of the table

    def _loop(self, target: ast.expr, source: ast.expr, at: ast.AST) -> None:
        for value in source.elts if isinstance(source, (ast.List, ast.Tuple)) else [source]:
            self._bind(target, value, at)

    def _bind(self, target: ast.expr, value: ast.expr | None, at: ast.AST) -> None:
        if value is None:
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            values = [value] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
                values = values if starred else value.elts
            for element, given in zip(target.elts, values, strict=True):
                self._bind(element, given, at)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, at)
        elif isinstance(target, ast.Name):
            self.by_function.setdefault((self._function_of(at), target.id), []).append(value)
        elif (name := dotted(target)).startswith("self."):
            self.by_class.setdefault((self._class_of(at), name), []).append(value)


_TABLES: WeakKeyDictionary[SourceModule, Bindings] = WeakKeyDictionary()


def bindings(module: SourceModule) -> Bindings:
    """The table of a file, made on first use."""
    found = _TABLES.get(module)
    if found is None:
        found = _TABLES[module] = Bindings(module)
    return found


def assigned(module: SourceModule, node: ast.AST, name: str) -> list[ast.expr]:
    """The values that `name` (or `self.name`) is given: in its function, in its class, else in the file."""
    table = bindings(module)
    if name.startswith("self."):
        return table.by_class.get((module.class_of(node), name), [])
    values = table.by_function.get((module.function_of(node), name))
    return values or table.by_function.get((None, name), [])
