"""The scale of an expression: what it is made of, counted in powers of the number of processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from codemods.analysis.averages.calls import call_number, count_of, is_process_count
from codemods.analysis.averages.frame import Frame
from codemods.analysis.averages.scale import CONSTANT, PROCESSES, Items, Number, Parts, Scale, averaged, mapped, over, plus, times
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.variance.paths import path_of
from codemods.runtime.record import replace

_COUNTS = re.compile(r"(^|\.)(num_samples|total_size)$")


def number_of(frame: Frame, node: ast.expr) -> Number:
    """None where the source does not show it."""
    run = _EVALUATED.get(node.__class__)
    found = run(frame, node) if run is not None else None
    return Scale(content=True) if found is None and frame.is_of_batch(node) else found


def _constant(frame: Frame, node: ast.Constant) -> Number:
    del frame
    return CONSTANT if isinstance(node.value, (int, float)) else None


def _name(frame: Frame, node: ast.Name | ast.Attribute) -> Number:
    path = path_of(node)
    if path in frame.env:
        return frame.env[path]
    if is_process_count(frame, node):
        return PROCESSES
    if isinstance(node, ast.Attribute):
        if node.attr == "batch_size":
            return Scale()
        if node.attr == "num_samples" and path:
            return frame.many(path.rpartition(".")[0].removesuffix(".sampler"), node.value)
        if node.attr in ("T", "data", "grad"):
            return frame.of(node.value)
    return None


def _operation(frame: Frame, node: ast.BinOp) -> Number:
    left, right = frame.of(node.left), frame.of(node.right)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return plus(left, right)
    if not isinstance(right, Scale):
        both = isinstance(node.op, ast.Mult) and isinstance(left, Scale)
        return mapped(right, lambda s: times(s, left)) if both and isinstance(left, Scale) else None
    if isinstance(node.op, ast.Mult):
        if isinstance(node.left, ast.List):  # `[None] * n`
            return None
        return mapped(left, lambda s: times(s, right))
    if isinstance(node.op, (ast.Div, ast.FloorDiv)):
        return divided(frame, node, left, right, node.right)
    return None


def divided(frame: Frame, node: ast.expr | ast.stmt, left: Number, right: Scale, divisor: ast.expr) -> Number:
    by_data = right.content and right.joined is None and frame.is_by_data(divisor)
    return mapped(left, lambda s: over(frame.at(node), s, right, by_data=by_data))


def _signed(frame: Frame, node: ast.UnaryOp) -> Number:
    return frame.of(node.operand) if isinstance(node.op, (ast.USub, ast.UAdd)) else None


def _chosen(frame: Frame, node: ast.IfExp) -> Number:
    several = several_processes(frame.module, node.test)
    if several is not None:
        return frame.of(node.body if several else node.orelse)
    return plus(frame.of(node.body), frame.of(node.orelse))


def _either(frame: Frame, node: ast.BoolOp) -> Number:
    """`count or 1`."""
    found = frame.of(node.values[0])
    for value in node.values[1:]:
        found = plus(found, frame.of(value))
    return found


def _element(frame: Frame, node: ast.Subscript) -> Number:
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    path = path_of(node.value)
    if key is not None and path and (entry := f"{path}[{key!r}]") in frame.env:
        return frame.env[entry]
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return _size(frame, node.value.value)
    held = frame.of(node.value)
    if isinstance(held, Parts):
        return held.get(key) if key is not None else averaged(held)
    if isinstance(held, Items):
        return Items(held.element, None) if isinstance(node.slice, ast.Slice) else held.element
    return held


def _size(frame: Frame, node: ast.expr) -> Number:
    """`x.shape[0]`: of a batch as many as on any rank."""
    return Scale(own=True) if frame.is_of_batch(node) else None


def _listed(frame: Frame, node: ast.Tuple | ast.List) -> Number:
    return Parts(tuple((i, frame.of(e)) for i, e in enumerate(node.elts)))


def _entries(frame: Frame, node: ast.Dict) -> Number:
    keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
    if any(k is None for k in keys):
        return None
    return Parts(tuple((k, frame.of(v)) for k, v in zip(keys, node.values, strict=True)))


def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Number:
    """One number for each of what is gone through."""
    if len(node.generators) != 1:
        return None
    part = node.generators[0]
    source = frame.of(part.iter)
    before, data = dict(frame.env), frame.over_data
    if isinstance(source, Items):
        _bound(frame, part.target, source.element)
        frame.over_data = 0
    elif isinstance(source, Parts):
        _bound(frame, part.target, averaged(source))
    else:
        frame.over_data += 1
    count = source.count if isinstance(source, Items) else CONSTANT if isinstance(source, Parts) else count_of(frame, part.iter)
    element = frame.of(node.elt)
    frame.env, frame.over_data = before, data
    return Items(element, replace(count, constant=False) if count is not None else None)


def _bound(frame: Frame, target: ast.expr, number: Number) -> None:
    if isinstance(target, ast.Tuple):
        for i, element in enumerate(target.elts):
            _bound(frame, element, number.get(i) if isinstance(number, Parts) else number)
    elif path := path_of(target):
        frame.env[path] = number


def _given_name(frame: Frame, node: ast.NamedExpr) -> Number:
    found = frame.env[node.target.id] = frame.of(node.value)
    return found


def _compared(frame: Frame, node: ast.Compare) -> Number:
    """`prediction == target` of a batch; of anything else a test is no number."""
    return Scale(content=True) if frame.is_of_batch(node) else None


_EVALUATED: dict[type[ast.expr], Callable[[Frame, Any], Number]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _name, ast.BinOp: _operation, ast.UnaryOp: _signed,
    ast.IfExp: _chosen, ast.BoolOp: _either, ast.Subscript: _element, ast.Tuple: _listed, ast.List: _listed,
    ast.Dict: _entries, ast.ListComp: _comprehension, ast.GeneratorExp: _comprehension, ast.NamedExpr: _given_name,
    ast.Compare: _compared, ast.Call: call_number,
}  # fmt: skip
