"""What a method does behind its call: tensors that it changes in place, and functions of the model that it calls itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from codemods.analysis.model.flow_frame import Env, Frame
from codemods.analysis.model.flow_values import Value, doubtful, flat
from codemods.analysis.names import dotted

if TYPE_CHECKING:
    from codemods.analysis.model.model_flow import Flow

_NO_WRITES = frozenset({"requires_grad_", "detach_", "share_memory_", "zero_", "retain_grad"})


def writes_in_place(method: str) -> bool:
    """True for `weights.scatter_(1, index, values)`: what it is handed is in the tensor afterwards."""
    return method.endswith("_") and not method.startswith("_") and not method.endswith("__") and method not in _NO_WRITES


def note_hidden_uses(flow: Flow, frame: Frame, env: Env, node: ast.Call, given: list[Value]) -> None:
    """`graph.update_all(self.message, …)`: what the object calls, and what it keeps of it, is not in the source.

    Its other attributes (`graph.dstdata`) may hold what the model has put into one of them (`graph.srcdata["h"] = h`).
    """
    func = node.func
    if not isinstance(func, ast.Attribute) or "hook" in func.attr:
        return
    name, where = dotted(func.value), f"{frame.module.path}:{node.lineno}"
    if any(value.closure is not None for value in given):
        flow.problems.setdefault(f"a function of the model is handed to {func.attr} ({where})")
    held = [value for key, value in env.items() if name and key.startswith(f"{name}.") and value.carries]
    if held and name in env and isinstance(frame.module.parent(node), ast.Expr):
        text = f"what {name} holds behind {func.attr} is not followed ({where})"
        env[name] = doubtful([flat(env[name]), *map(flat, held)], text)
