"""Pieces of equal length that a loop cuts a whole into, `rows[i : i + n]`: no shares of ranks, where all begin at the first."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk


def length_behind(module: SourceModule, node: ast.Subscript) -> tuple[ast.expr, ast.expr] | None:
    """(`rows`, `n`) for `rows[i : i + n]`, or another `rows` of that length, in a loop over `range(0, len(rows), n)`."""
    cut = node.slice
    if not isinstance(cut, ast.Slice) or cut.step is not None or not isinstance(cut.lower, ast.Name) or cut.upper is None:
        return None
    loop = _loop_of(module, cut.lower)
    if loop is None or not _is_worked_out(module, cut.upper, cut.lower.id):
        return None
    if not isinstance(loop, ast.Call) or dotted(loop.func) != "range" or len(loop.args) != 3 or loop.keywords:
        return None
    first, end, step = loop.args
    whole = _measured(end)
    begins = isinstance(first, ast.Constant) and first.value == 0
    return (whole, step) if begins and whole is not None else None


def _loop_of(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """What the nearest loop, or comprehension, goes through that counts by this name."""
    for up in module.ancestors(name):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(up, (ast.For, ast.AsyncFor)):
            loops: list[tuple[ast.expr, ast.expr]] = [(up.target, up.iter)]
        elif isinstance(up, (ast.ListComp, ast.GeneratorExp)):
            loops = [(g.target, g.iter) for g in up.generators]
        else:
            continue
        found = next((over for target, over in loops if isinstance(target, ast.Name) and target.id == name.id), None)
        if found is not None:
            return found
    return None


def _is_worked_out(module: SourceModule, end: ast.expr, begun: str) -> bool:
    """True for a sum with the name in it, or a name that is given nothing else."""
    values = [end]
    if isinstance(end, ast.Name):
        bound = bindings_of(module, end)
        values = [b.value for b in bound if b.value is not None and not b.parameter and not b.part]
        if not values or len(values) != len(bound):
            return False
    return all(any(isinstance(n, ast.Name) and n.id == begun for n in (v, *walk(v))) for v in values)


def _measured(end: ast.expr) -> ast.expr | None:
    """`rows` of `len(rows)`, `rows.shape[0]` and `rows.size(0)`."""
    if isinstance(end, ast.Call) and dotted(end.func) == "len" and len(end.args) == 1:
        return end.args[0]
    if isinstance(end, ast.Call) and isinstance(end.func, ast.Attribute) and end.func.attr == "size" and _is_zero(end.args):
        return end.func.value
    shape = end.value if isinstance(end, ast.Subscript) else None
    if isinstance(end, ast.Subscript) and isinstance(shape, ast.Attribute) and shape.attr == "shape" and _is_zero([end.slice]):
        return shape.value
    return None


def _is_zero(args: list[ast.expr]) -> bool:
    return len(args) == 1 and isinstance(args[0], ast.Constant) and args[0].value == 0
