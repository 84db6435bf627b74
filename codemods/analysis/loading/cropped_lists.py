"""Does a sampler cut its list to a multiple of what all ranks take at once, before it deals it out? Then no rank has one more.

`n, left = divmod(len(rows), world * size)`, `rows = rows[: world * size * n]`; or `rows[: len(rows) // step * step]`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_PROCESSES = lazy(r"world_?size|num_processes|replicas|nprocs")


def are_cropped(project: Project, places: Iterable[tuple[str, int]]) -> bool:
    """True where one of these (path, line) stands in a function that cuts so."""
    for path, line in places:
        module = project.module(path)
        if module is None or (b"//" not in module.data and b"divmod(" not in module.data):
            continue
        inside = (f for f in module.functions if f.lineno <= line <= (f.end_lineno or f.lineno))
        if any(_crops(function) for function in inside):
            return True
    return False


def _crops(function: FunctionNode) -> bool:
    steps = {q: step for node in walk_scope(function) if isinstance(node, ast.Assign) for q, step in _counted(node).items()}
    for node in walk_scope(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript):
            continue
        cut = node.value.slice
        if not isinstance(cut, ast.Slice) or cut.lower is not None or cut.upper is None or cut.step is not None:
            continue
        if dotted(node.targets[0]) == dotted(node.value.value) != "" and _is_multiple(cut.upper, steps):
            return True
    return False


def _counted(node: ast.Assign) -> dict[str, ast.expr]:
    """Name -> the number of rows of one round: `n, left = divmod(len(rows), step)`, `n = len(rows) // step`."""
    target, value = node.targets[0], node.value
    if isinstance(value, ast.Call) and dotted(value.func) == "divmod" and len(value.args) == 2:
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        return {dotted(first): value.args[1]} if first is not None and dotted(first) else {}
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv) and dotted(target):
        return {dotted(target): value.right}
    return {}


def _is_multiple(end: ast.expr, steps: dict[str, ast.expr]) -> bool:
    """True for a product of all factors of a step, the number of the rounds among them."""
    factors = _factors(end)
    for rounds, step in steps.items():
        of_step = _factors(step)
        if factors == of_step + Counter([rounds]) and any(_PROCESSES.search(f) for f in of_step):
            return True
    whole = end if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult) else None
    for one, other in ((whole.left, whole.right), (whole.right, whole.left)) if whole is not None else ():
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv) and _factors(one.right) == _factors(other):
            return any(_PROCESSES.search(f) for f in _factors(other))
    return False


def _factors(node: ast.expr) -> Counter[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) + _factors(node.right)
    return Counter([ast.unparse(node)])
