"""The loaders that a loop over a written collection goes through: `for loader, name in [(loaders[n], n) for n in names]`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, only_value
from codemods.files.source import SourceModule

_DEPTH = 3  # names between the loop and the collection


def held_loaders(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """All that a loop variable may be; nothing where that is not written out."""
    bound = bindings_of(module, name)
    loop = bound[0].node if len(bound) == 1 else None
    while loop is not None and not isinstance(loop, ast.For):
        loop = module.parent(loop)
    if loop is None or bound[0].value is not None:
        return []
    if isinstance(loop.target, ast.Name):
        return _elements(module, loop.iter, None, _DEPTH) if loop.target.id == name.id else []
    parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    place = next((i for i, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name.id), None)
    return _elements(module, loop.iter, place, _DEPTH) if place is not None else []


def _elements(module: SourceModule, holder: ast.expr, place: int | None, depth: int) -> list[ast.expr]:
    """The elements of a collection, or the part of each at a place."""
    if depth == 0:
        return []
    if isinstance(holder, ast.Name):
        value = _written(module, holder)
        return _elements(module, value, place, depth - 1) if value is not None else []
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute) and not holder.args:
        of_value = (holder.func.attr, place) in (("values", None), ("items", 1))
        return _values(module, holder.func.value) if of_value else []
    if isinstance(holder, ast.ListComp):
        return _part(module, holder.elt, place)
    if not isinstance(holder, (ast.List, ast.Tuple)):
        return []
    each = [_part(module, element, place) for element in holder.elts]
    return [loader for found in each for loader in found] if all(each) else []


def _part(module: SourceModule, element: ast.expr, place: int | None) -> list[ast.expr]:
    if place is not None:
        if not isinstance(element, ast.Tuple) or place >= len(element.elts):
            return []
        element = element.elts[place]
    return _values(module, element.value) if isinstance(element, ast.Subscript) else [element]


def _values(module: SourceModule, node: ast.expr) -> list[ast.expr]:
    """The values of a dictionary that is written out, or the one expression that makes them all."""
    value = _written(module, node) if isinstance(node, ast.Name) else node
    if isinstance(value, ast.DictComp):
        return [value.value]
    return list(value.values) if isinstance(value, ast.Dict) and all(value.keys) else []


def _written(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The one value of a name, where nothing more is put into it."""
    puts = (n for n in module.nodes(ast.Subscript) if isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name))
    more = any(isinstance(n.value, ast.Name) and n.value.id == name.id for n in puts)
    return None if more else only_value(bindings_of(module, name))
