"""Loaders that a program keeps in a list, and goes through one after the other."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings, bindings_of, name_or_field_bindings
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule


def elements(module: SourceModule, node: ast.expr) -> tuple[ast.expr, ...]:
    """What a loop variable stands for: what is put into the list that the loop goes through, where all of that is seen.

    The list starts empty, and is filled by `append` alone, of a name in its function or of a field in its class.
    """
    if not isinstance(node, ast.Name):
        return ()
    bound = bindings_of(module, node)
    loops = [b.node for b in bound if isinstance(b.node, ast.For)]
    here = [loop for loop in loops if any(up is loop for up in module.ancestors(node))]
    if len(here) != 1 or not isinstance(here[0].target, ast.Name):
        return ()
    return put_into(module, here[0].iter)


def put_into(module: SourceModule, holder: ast.expr) -> tuple[ast.expr, ...]:
    """What a list holds that starts empty or written out, and is filled by `append` alone; () where another thing is given."""
    starts = [b.value for b in name_or_field_bindings(module, holder)]
    if not starts or not all(isinstance(s, ast.List) for s in starts):
        return ()
    name, found = dotted(holder), [e for s in starts if isinstance(s, ast.List) for e in s.elts]
    for call in module.calls_named("append"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and _is_same(module, call.func.value, holder):
            found += call.args
    return tuple(found)


def _is_same(module: SourceModule, one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
        return attribute_bindings(module, one) == attribute_bindings(module, other)
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return bindings_of(module, one) == bindings_of(module, other)
    return False
