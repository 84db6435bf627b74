"""Is a name the number of samples in a batch, by what its function gives it? `B, C, H, W = x.shape`, `rows = len(x)`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope


def names_a_batch_size(module: SourceModule, value: ast.expr) -> bool:
    """True where a name in the value is given the first side of a tensor in the same function, and nothing else."""
    function = module.function_of(value)
    names = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    return function is not None and any(_is_size(function, name) for name in names)


def _is_size(function: FunctionNode, name: str) -> bool:
    given = [n for n in walk_scope(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    found = [a for a in walk_scope(function) if isinstance(a, ast.Assign) and len(a.targets) == 1 and _gives(a, name)]
    return bool(given) and len(given) == len(found)


def _gives(assign: ast.Assign, name: str) -> bool:
    target = assign.targets[0]
    if isinstance(target, ast.Name):
        return target.id == name and _is_first_side(assign.value)
    whole = isinstance(target, (ast.Tuple, ast.List)) and _is_shape(assign.value)
    return whole and isinstance(target, (ast.Tuple, ast.List)) and dotted(target.elts[0]) == name


def _is_shape(value: ast.expr) -> bool:
    """`x.shape` and `x.size()`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr == "size" and not value.args
    return isinstance(value, ast.Attribute) and value.attr == "shape"


def _is_first_side(value: ast.expr) -> bool:
    """`x.shape[0]`, `x.size(0)` and `len(x)`."""
    if isinstance(value, ast.Subscript):
        return _is_shape(value.value) and _is_zero(value.slice)
    if not isinstance(value, ast.Call) or len(value.args) != 1:
        return False
    sized = isinstance(value.func, ast.Attribute) and value.func.attr == "size" and _is_zero(value.args[0])
    return sized or dotted(value.func) == "len"


def _is_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0
