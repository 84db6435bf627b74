"""The number of processes under a name of its own: `self.count = accelerator.num_processes`, `many = count > 1`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, name_or_field_bindings
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk

_SIZES = frozenset({"num_processes", "world_size", "get_world_size"})
_VARIABLE = "WORLD_SIZE"
_PROPERTIES = frozenset({"property", "cached_property"})
_STEPS = 3  # names behind names
_PLAIN = (ast.Name, ast.Attribute)


def asks_for_kept_size(module: SourceModule, test: ast.expr) -> bool:
    """True for a test that compares such a name, or reads a flag that was made by such a comparison."""
    for node in (test, *walk(test)):
        if isinstance(node, ast.Compare) and any(holds_size(module, n) for n in (node.left, *node.comparators)):
            return True
        if isinstance(node, _PLAIN) and isinstance(node.ctx, ast.Load) and _is_flag(module, node):
            return True
    return False


def holds_size(module: SourceModule, node: ast.expr, steps: int = _STEPS) -> bool:
    """True for a name, or a field of `self`, that is given the number of processes, or 1 where there is but one."""
    given = list(_given(module, node)) if isinstance(node, _PLAIN) else []
    if not steps or not given or any(b.value is None or b.part for b in given):
        return False
    values = [b.value for b in given if b.value is not None]
    sizes = [v for v in values if not (isinstance(v, ast.Constant) and v.value == 1)]
    return bool(sizes) and all(_is_size(module, v, steps) for v in sizes)


def _is_size(module: SourceModule, value: ast.expr, steps: int) -> bool:
    if isinstance(value, ast.IfExp):
        return any(_is_size(module, v, steps) for v in (value.body, value.orelse)) and all(
            _is_size(module, v, steps) or (isinstance(v, ast.Constant) and v.value == 1) for v in (value.body, value.orelse)
        )
    if isinstance(value, ast.Call) and dotted(value.func) == "int" and len(value.args) == 1:
        return any(isinstance(n, ast.Constant) and n.value == _VARIABLE for n in walk(value)) or _is_size(
            module, value.args[0], steps
        )
    asked = value.func if isinstance(value, ast.Call) else value
    if isinstance(value, ast.Call) and (value.args or value.keywords):
        return False  # of a group, which may be a part of the processes
    return last(dotted(asked)) in _SIZES or (not isinstance(value, ast.Call) and holds_size(module, value, steps - 1))


def _is_flag(module: SourceModule, node: ast.expr) -> bool:
    given = list(_given(module, node))
    return bool(given) and all(b.value is not None and not b.part and _compares(module, b.value) for b in given)


def _compares(module: SourceModule, value: ast.expr) -> bool:
    sides = [value.left, *value.comparators] if isinstance(value, ast.Compare) else []
    return any(_is_size(module, side, _STEPS) for side in sides)


def _given(module: SourceModule, node: ast.expr) -> Iterator[Binding]:
    """What a name, or a field of `self`, is given, and what a property of that name returns."""
    yield from name_or_field_bindings(module, node)
    if not isinstance(node, ast.Attribute) or dotted(node.value) != "self":
        return
    owner = module.class_of(node)
    for function in owner.body if owner is not None else ():
        if isinstance(function, ast.FunctionDef) and function.name == node.attr:
            if any(last(dotted(d)) in _PROPERTIES for d in function.decorator_list):
                yield from (Binding(function, value) for value in returned(function, module))
