"""The keys that may stand in `loaders[key]`, as far as they are written out, and the element that stands under one."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of, only_value
from codemods.analysis.reaching import reaching
from codemods.files.source import SourceModule

Key = int | str


def keys_of(module: SourceModule, node: ast.expr) -> tuple[Key, ...]:
    """Every key that the expression may be: none where one of them is not written out.

    A name stands for what it is given last, and for what a loop goes through (`for phase in ("train", "val")`).
    """
    if isinstance(node, ast.IfExp):
        ways = [keys_of(module, way) for way in (node.body, node.orelse)]
        return tuple(dict.fromkeys(key for way in ways for key in way)) if all(ways) else ()
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, (int, str)) else ()
    if not isinstance(node, ast.Name):
        return ()
    held = reaching(module, node, bindings_of(module, node))
    if len(held) != 1 or held[0].part:
        return ()
    value = held[0].value
    return keys_of(module, value) if isinstance(value, (ast.Constant, ast.IfExp)) else _gone_through(module, held[0])


def part_of(node: ast.expr, key: Key) -> ast.expr | None:
    """The element of a tuple, list or dictionary that is written out."""
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(key, int) and -len(node.elts) <= key < len(node.elts):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else node.elts[key]
    if isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                return value
    if isinstance(node, ast.DictComp):
        return node.value
    return None


def _gone_through(module: SourceModule, binding: Binding) -> tuple[Key, ...]:
    """The elements of a loop over a tuple or list that is written out there, or bound once to a name."""
    loop = binding.node
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return ()
    over = loop.iter
    if isinstance(over, ast.Name):
        over = only_value(bindings_of(module, over)) or over
    if not isinstance(over, (ast.Tuple, ast.List)):
        return ()
    ways = [keys_of(module, element) if isinstance(element, ast.Constant) else () for element in over.elts]
    return tuple(dict.fromkeys(key for way in ways for key in way)) if all(ways) else ()
