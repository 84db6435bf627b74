"""What a call gives beside what stands in it: `tqdm = partial(tqdm, disable=rank != 0)` gives each call of the name a keyword."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule

_MOST = 4  # partials of partials


def keywords_given(module: SourceModule, call: ast.Call) -> frozenset[str | None]:
    """The keywords of the call, and those of the `partial` that its name is bound to.

    None among them stands for what is not seen: `**options`, or a name that the file binds to something else.
    """
    own = frozenset(k.arg for k in call.keywords)
    return own | _beforehand(module, call.func, _MOST)


def _beforehand(module: SourceModule, called: ast.expr, depth: int) -> frozenset[str | None]:
    if isinstance(called, ast.Attribute):
        return frozenset(k for value in _put_in(module, called) for k in _of_value(module, value, called, depth))
    if not isinstance(called, ast.Name):
        return frozenset()
    found: set[str | None] = set()
    if called.id not in module.imports and any(f.name == called.id and module.parent(f) is module.tree for f in module.functions):
        found.add(None)
    for bound in _bound(module, called):
        found |= _of_value(module, bound.value, called, depth) if not bound.part else {None}
    return frozenset(found)


def _bound(module: SourceModule, name: ast.Name) -> list[Binding]:
    """What the file binds the name to, but for what stands in where a package is missing: `except ImportError: tqdm = list`."""
    return [b for b in bindings_of(module, name) if not b.parameter and not _stands_in(module, b)]


def _stands_in(module: SourceModule, bound: Binding) -> bool:
    nothing = isinstance(bound.value, ast.Constant) and bound.value.value is None
    return nothing or any(isinstance(up, ast.ExceptHandler) for up in module.ancestors(bound.node))


def _put_in(module: SourceModule, called: ast.Attribute) -> list[ast.expr]:
    """What is put into a module under this name: `tqdm.tqdm = partial(tqdm.tqdm, …)`."""
    name = dotted(called)
    if not name or called.attr not in _attributes_set(module):
        return []
    return [a.value for a in module.nodes(ast.Assign) if any(dotted(t) == name for t in a.targets)]


def _attributes_set(module: SourceModule) -> set[str]:
    return {t.attr for a in module.nodes(ast.Assign) for t in a.targets if isinstance(t, ast.Attribute)}


def _of_value(module: SourceModule, value: ast.expr | None, called: ast.expr, depth: int) -> frozenset[str | None]:
    if isinstance(value, ast.Call) and last(dotted(value.func)) == "partial" and value.args and depth:
        given = frozenset(k.arg for k in value.keywords)
        inner = value.args[0]
        same = ast.dump(inner) == ast.dump(called)
        return given if same else given | _beforehand(module, inner, depth - 1)
    return _beforehand(module, value, depth - 1) if isinstance(value, (ast.Name, ast.Attribute)) and depth else frozenset({None})
