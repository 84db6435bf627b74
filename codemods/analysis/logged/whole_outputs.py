"""Values of a log call that are all outputs of the network for a batch: Lightning raises on more than one number."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.logged.log_calls import LogCall, logged_value
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.returned_parts import returned_parts
from codemods.files.source import SourceModule, walk_scope

# What leaves the number of samples as it is.
_KEEPS = frozenset({"squeeze", "view", "reshape", "flatten", "detach", "float", "sigmoid", "softmax", "cpu"})
_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy",
     "binary_cross_entropy_with_logits", "ones_like", "zeros_like"}
)  # fmt: skip


def is_whole_output(log: LogCall) -> bool:
    """True for `self.log("prediction", out)` of `out = self.net(x)` that a loss holds against the targets: no single number.

    Also where a method of the class made both, and gives them back.
    """
    value = logged_value(log.call) if log.is_log else None
    if not isinstance(value, ast.Name):
        return False
    bound = bindings_of(log.module, value)
    if len(bound) != 1 or bound[0].value is None:
        return False
    if not bound[0].part:
        return _is_held_against(log.module, value, bound[0].value)
    parts = returned_parts(log.project, log.module, value.id, bound[0])
    return bool(parts) and all(_is_output_of(module, part) for module, part in parts)


def _is_output_of(module: SourceModule, part: ast.expr) -> bool:
    bound = bindings_of(module, part) if isinstance(part, ast.Name) else []
    value = bound[0].value if len(bound) == 1 and not bound[0].part else None
    return isinstance(part, ast.Name) and value is not None and _is_held_against(module, part, value)


def _is_held_against(module: SourceModule, name: ast.Name, value: ast.expr) -> bool:
    """True where `name`, bound to the network's output, is the first of a loss's arguments, or a part of that."""
    scope = module.function_of(name)
    if scope is None or not _is_of_network(value):
        return False
    losses = (n for n in walk_scope(scope) if isinstance(n, ast.Call) and last(dotted(n.func)) in _LOSSES and n.args)
    return any(isinstance(n, ast.Name) and n.id == name.id for call in losses for n in _elementwise(call.args[0]))


def _elementwise(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) else [node]


def _is_of_network(value: ast.expr) -> bool:
    """True for `self(x)`, `self.net(x)`, and what keeps its shape: `torch.squeeze(self.net(x))`, `self.net(x).detach()`."""
    while isinstance(value, ast.Call):
        name = dotted(value.func)
        if name == "self" or (name.startswith("self.") and name.count(".") == 1):
            return bool(value.args)
        if last(name) in _KEEPS and name.partition(".")[0] in ("torch", "F") and value.args:
            value = value.args[0]
        elif isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPS:
            value = value.func.value
        else:
            return False
    return False
