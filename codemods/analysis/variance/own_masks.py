"""Masks: what keeps as many elements as the values that a rank holds let through."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.reaching import sure_value
from codemods.files.source import FunctionNode, SourceModule, walk

_DEPTH = 3
_TESTS = frozenset({"eq", "ne", "gt", "ge", "lt", "le", "isin", "isnan", "isfinite", "isinf", "greater", "less", "not_equal"})
_JOINS = frozenset({"logical_and", "logical_or", "logical_not"})
_AS_IT_IS = frozenset({"view", "reshape", "flatten", "squeeze", "to", "cpu", "cuda", "bool", "detach", "unsqueeze", "numpy"})
_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# What lets through as many on every rank: one of each row, the k best, a diagonal.
_COUNTED = frozenset(
    {"arange", "eye", "one_hot", "topk", "argsort", "sort", "kthvalue", "quantile", "median", "cumsum", "linspace", "range",
     "triu", "tril", "rand", "randn", "rand_like", "randperm", "diag", "scatter", "scatter_", "sort_values", "percentile"}
)  # fmt: skip
_EXTREMES = frozenset({"max", "min", "amax", "amin"})


def is_mask(module: SourceModule, function: FunctionNode | None, node: ast.expr, depth: int = 0) -> bool:
    """True for a comparison of elements, under a name too, whose count nothing fixes."""
    return _compares(module, function, node, depth) and not _is_counted(module, function, node, 0)


def _compares(module: SourceModule, function: FunctionNode | None, node: ast.expr, depth: int) -> bool:
    if isinstance(node, ast.Compare):
        return all(isinstance(o, _ORDERS) for o in node.ops)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _compares(module, function, node.operand, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return any(_compares(module, function, part, depth) for part in (node.left, node.right))
    if isinstance(node, ast.Name) and depth < _DEPTH:
        value = sure_value(module, function, node)
        return value is not None and _compares(module, function, value, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    end = last(dotted(node.func)) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    if end in _TESTS:
        return True
    if end in _JOINS:
        return any(_compares(module, function, a, depth) for a in node.args)
    if end not in _AS_IT_IS or not isinstance(node.func, ast.Attribute):
        return False
    inner = node.func.value
    named = end == "bool" and "mask" in ast.unparse(inner).rpartition(".")[2].lower()
    return named or _compares(module, function, inner, depth)


def _is_counted(module: SourceModule, function: FunctionNode | None, node: ast.expr, depth: int) -> bool:
    """True where a call of the comparison, or of what its names are given, fixes how many there are."""
    equal = any(isinstance(n, ast.Compare) and any(isinstance(o, ast.Eq) for o in n.ops) for n in (node, *walk(node)))
    for part in (node, *walk(node)):
        if isinstance(part, ast.Call):
            end = part.func.attr if isinstance(part.func, ast.Attribute) else dotted(part.func)
            if end in _COUNTED or (equal and end in _EXTREMES):
                return True
        elif isinstance(part, ast.Name) and depth < _DEPTH:
            value = sure_value(module, function, part)
            if value is not None and _is_counted(module, function, value, depth + 1):
                return True
    return False
