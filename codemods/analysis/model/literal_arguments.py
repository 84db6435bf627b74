"""The value of an expression of parameters for the literals that one call hands over: `split == "train"` for `load("train")`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from codemods.analysis.model.signatures import bind, defaults
from codemods.files.source import FunctionNode, SourceModule, walk_scope

UNTOLD = object()
_ASKED: dict[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b,
}  # fmt: skip
_ORDERED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip


def literal_of(node: ast.expr | None, given: Mapping[str, ast.expr]) -> object:
    """Its constant value; UNTOLD where more than literals decide. given: parameter -> argument or default."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return literal_of(given.get(node.id), {})
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = [literal_of(e, given) for e in node.elts]
        return UNTOLD if UNTOLD in parts else tuple(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        held = literal_of(node.operand, given)
        return UNTOLD if held is UNTOLD else not held
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        held = literal_of(node.operand, given)
        return -held if isinstance(held, (int, float)) else UNTOLD
    if isinstance(node, ast.IfExp):
        test = literal_of(node.test, given)
        return UNTOLD if test is UNTOLD else literal_of(node.body if test else node.orelse, given)
    if isinstance(node, ast.BoolOp):
        return _joined(node, given)
    return _compared(node, given) if isinstance(node, ast.Compare) and len(node.ops) == 1 else UNTOLD


def _joined(node: ast.BoolOp, given: Mapping[str, ast.expr]) -> object:
    ends = isinstance(node.op, ast.Or)  # the answer that one part is enough for
    parts = [literal_of(v, given) for v in node.values]
    if any(p is not UNTOLD and bool(p) is ends for p in parts):
        return ends
    return UNTOLD if UNTOLD in parts else not ends


def _compared(node: ast.Compare, given: Mapping[str, ast.expr]) -> object:
    left, right, (asked,) = literal_of(node.left, given), literal_of(node.comparators[0], given), node.ops
    if left is UNTOLD or right is UNTOLD:
        return UNTOLD
    if compare := _ASKED.get(type(asked)):
        return compare(left, right)
    if order := _ORDERED.get(type(asked)):
        return order(left, right) if isinstance(left, (int, float)) and isinstance(right, (int, float)) else UNTOLD
    if isinstance(asked, (ast.In, ast.NotIn)):
        if isinstance(right, tuple) or (isinstance(right, str) and isinstance(left, str)):
            return (left in right) is isinstance(asked, ast.In)
    return UNTOLD


def told(function: FunctionNode, call: ast.Call, outer: Mapping[str, ast.expr], *, bound: bool) -> dict[str, ast.expr]:
    """Parameter -> the literal that the call, or the default, gives it, where the function leaves it as it is.

    outer: the same of the function that the call stands in.
    """
    written = bind(function, call, bound=bound)
    if written is None:
        return {}
    changed = {n.id for n in walk_scope(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found: dict[str, ast.expr] = {}
    for name, value in {**defaults(function), **written}.items():
        literal = literal_of(value, outer if name in written else {})
        if name not in changed and (literal is None or isinstance(literal, (bool, int, str))):
            found[name] = ast.Constant(literal)
    return found


def is_ruled_out(module: SourceModule, node: ast.AST, given: Mapping[str, ast.expr]) -> bool:
    """True in an arm of an `if`, or of `a if x else b`, of the same function that does not run for these literals."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if isinstance(up, ast.If) and (answer := literal_of(up.test, given)) is not UNTOLD:
            if any(s is below for s in (up.orelse if answer else up.body)):
                return True
        elif isinstance(up, ast.IfExp) and (answer := literal_of(up.test, given)) is not UNTOLD:
            if below is (up.orelse if answer else up.body):
                return True
        below = up
    return False
