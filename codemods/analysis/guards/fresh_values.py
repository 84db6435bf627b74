"""Tensors made of nothing that a model gave, though they ask for a gradient: a backward pass from one reaches no parameter."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.names import dotted, family, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace

_MAKERS = frozenset(
    {"zeros", "ones", "tensor", "full", "zeros_like", "ones_like", "full_like", "as_tensor", "scalar_tensor"}
)  # fmt: skip
_MAKERS_OF_TENSORS = frozenset({"new_zeros", "new_ones", "new_tensor", "new_full"})
# Methods of which the result hangs on the tensor alone.
_KEEPING = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "sum", "mean", "squeeze", "unsqueeze", "view", "reshape",
     "clone", "type_as", "type", "contiguous"}
)  # fmt: skip

Decider = ast.expr | ast.ExceptHandler


@record
class Fresh:
    """node: the expression that makes it. grad: it asks for a gradient. by: what decides that it stands here, if that is seen."""

    node: ast.expr
    grad: bool
    by: Decider | None = None


def path_of(node: ast.expr) -> str:
    """`loss`, `self.loss`, `out['loss']`, the place of a call; "" for what has no name."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and (holder := path_of(node.value)):
        return f"{holder}[{node.slice.value!r}]"
    if isinstance(node, ast.Call):
        return f"call {node.lineno}:{node.col_offset}:{node.end_col_offset}"
    return dotted(node)


def fresh_value(module: SourceModule, node: ast.expr, known: Mapping[str, Fresh]) -> Fresh | None:
    """The fresh tensor that an expression is, given those that names and calls hold; None where it may hang on a model."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return known.get(path_of(node))
    if isinstance(node, ast.Subscript):
        return known.get(path_of(node)) or fresh_value(module, node.value, known)
    if isinstance(node, ast.UnaryOp):
        return fresh_value(module, node.operand, known)
    if isinstance(node, ast.BinOp):
        return _of_operands(module, node, known)
    return _of_call(module, node, known) if isinstance(node, ast.Call) else None


def _of_call(module: SourceModule, node: ast.Call, known: Mapping[str, Fresh]) -> Fresh | None:
    if (given := known.get(path_of(node))) is not None:
        return given
    name = qualified(module, node.func)
    if last(name) in _MAKERS and family(name) == "torch":
        return Fresh(node, _asks(node))
    if last(name) == "Variable" and node.args and (held := fresh_value(module, node.args[0], known)) is not None:
        return replace(held, grad=held.grad or _asks(node))
    if not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in _MAKERS_OF_TENSORS:
        return Fresh(node, _asks(node))
    if node.func.attr == "detach":
        return Fresh(node, grad=False)
    held = fresh_value(module, node.func.value, known)
    if held is not None and node.func.attr == "requires_grad_":
        return replace(held, grad=switches_on(node))
    return held if node.func.attr in _KEEPING else None


def _asks(node: ast.Call) -> bool:
    return any(k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)


def switches_on(call: ast.Call) -> bool:
    """True for `requires_grad_()` and `requires_grad_(True)`."""
    given = [*call.args, *(k.value for k in call.keywords)]
    return not given or (isinstance(given[0], ast.Constant) and given[0].value is True)


def summed(left: Fresh, right: Fresh) -> Fresh:
    """The sum of two, which is made of nothing only where both are: what decides over one decides over it."""
    told = left if left.by is not None or (left.grad and right.by is None) else right
    return replace(told, grad=left.grad or right.grad)


def _of_operands(module: SourceModule, node: ast.BinOp, known: Mapping[str, Fresh]) -> Fresh | None:
    left, right = (fresh_value(module, n, known) for n in (node.left, node.right))
    if left is not None and right is not None:
        return summed(left, right)
    held, other = (left, node.right) if left is not None else (right, node.left)
    return held if held is not None and is_number(module, other) else None


def is_number(module: SourceModule, node: ast.expr) -> bool:
    """True for what carries no gradient: numbers, settings (`args.weight`), lengths, names in words of a count or a weight."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Attribute):
        return dotted(node) != "" and any(word in node.attr.lower() for word in _COUNTS)
    if isinstance(node, ast.Name):
        return any(word in node.id.lower() for word in _COUNTS)
    if isinstance(node, ast.BinOp):
        return is_number(module, node.left) and is_number(module, node.right)
    if isinstance(node, ast.Call):
        if dotted(node.func) in ("len", "float", "int", "max"):
            return True
        held = isinstance(node.func, ast.Attribute) and node.func.attr in (*_KEEPING, "get_world_size")
        return held and isinstance(node.func, ast.Attribute) and is_number(module, node.func.value)
    return False


_COUNTS = ("weight", "scale", "accum", "steps", "lambda", "alpha", "beta", "multiplier", "coef", "factor", "world_size", "count",
           "num_", "n_", "batch_size")  # fmt: skip


def given_to_backward(call: ast.Call) -> ast.expr | None:
    """The loss of `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
    assert isinstance(call.func, ast.Attribute)
    holder = call.func.value
    if call.func.attr == "manual_backward":
        return call.args[0] if call.args else None
    if call.func.attr != "backward":
        return None
    if call.args and any(word in dotted(holder).lower() for word in ("accelerator", "fabric")):
        return call.args[0]
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute) and holder.func.attr == "scale" and holder.args:
        return holder.args[0]
    return holder
