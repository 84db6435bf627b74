"""Was the tensor that is summed over the ranks divided above by a number that each rank has of its own batch?"""

from __future__ import annotations

import ast

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.bindings import bindings_in, bindings_of, only_value
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, ends_above, walk

_DEEP = 4
_JOINS = ("all_reduce", "reduce", "gather", "all_gather", "gather_for_metrics")
_DIVIDES = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_"})
_MEANS = frozenset({"mean", "nanmean"})


def divided_above(module: SourceModule, call: ast.Call, name: ast.Name) -> ast.expr | ast.stmt | None:
    """The division, or the mean, in front of the call; None where the divisor counts for all ranks, or is written out."""
    function = module.function_of(call)
    return _of_name(module, function, name.id, call, _DEEP) if function is not None else None


def _of_name(
    module: SourceModule, function: FunctionNode, name: str, before: ast.AST, depth: int
) -> ast.expr | ast.stmt | None:
    for changed in module.nodes(ast.AugAssign):
        if isinstance(changed.op, ast.Div) and dotted(changed.target) == name and _is_own(module, function, changed.value):
            if module.function_of(changed) is function and ends_above(changed, before):
                return changed
    for statement in module.nodes(ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name:
            in_place = call.func.attr in _DIVIDES and call.func.attr.endswith("_") and bool(call.args)
            above = module.function_of(statement) is function and ends_above(statement, before)
            if in_place and above and _is_own(module, function, call.args[0]):
                return statement
    for bound in bindings_in(module, function, name):
        if bound.value is not None and not bound.part and ends_above(bound.node, before):
            if (found := _of_value(module, function, bound.value, depth - 1)) is not None:
                return found
    return None


def _of_value(module: SourceModule, function: FunctionNode, value: ast.expr, depth: int) -> ast.expr | ast.stmt | None:
    if depth <= 0:
        return None
    if isinstance(value, ast.Name):
        return _of_name(module, function, value.id, value, depth)
    if isinstance(value, ast.BinOp):
        if isinstance(value.op, ast.Div):
            return value if _is_own(module, function, value.right) else _of_value(module, function, value.left, depth - 1)
        both = (value.left, value.right) if isinstance(value.op, (ast.Add, ast.Sub)) else ()
        return next((f for side in both if (f := _of_value(module, function, side, depth - 1)) is not None), None)
    if isinstance(value, ast.Call):
        end = last(dotted(value.func)) or (value.func.attr if isinstance(value.func, ast.Attribute) else "")
        held = value.func.value if isinstance(value.func, ast.Attribute) else None
        if end in _MEANS:
            return value
        if end in _DIVIDES and value.args and _is_own(module, function, value.args[-1]):
            return value
        return _of_value(module, function, held, depth - 1) if held is not None else None
    return None


def _is_own(module: SourceModule, function: FunctionNode, divisor: ast.expr) -> bool:
    """False for a number that is written out, for one with the number of processes in it, and for what was joined itself."""
    value = only_value(bindings_of(module, divisor)) if isinstance(divisor, ast.Name) else None
    for part in (divisor, value) if value is not None else (divisor,):
        if isinstance(part, ast.Constant):
            return False
        for node in walk(part):
            if isinstance(node, ast.expr) and is_process_count_in(module, node):
                return False
            if isinstance(node, ast.Attribute) and node.attr == "dataset":
                return False
            if isinstance(node, ast.Call) and last(dotted(node.func)) in _JOINS:
                return False
    joins = (c for c in module.calls_named(*_JOINS) if module.function_of(c) is function)
    return not any(c.args and dotted(c.args[0]) == dotted(divisor) != "" for c in joins)
