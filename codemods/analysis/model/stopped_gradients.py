"""Contexts that switch gradients off: `torch.no_grad()`, `torch.set_grad_enabled(...)`."""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.data import torch_modules as table
from codemods.files.source import SourceModule


def callee(node: ast.expr) -> ast.expr:
    """What is called, where that is a call."""
    return node.func if isinstance(node, ast.Call) else node


def stops_gradients(module: SourceModule, context: ast.expr) -> bool:
    """True for a `with` that lets no gradient through."""
    name = last(qualified(module, callee(context)))
    if name in table.NO_GRAD:
        return True
    if name == "set_grad_enabled" and isinstance(context, ast.Call) and context.args:
        first = context.args[0]
        return not (isinstance(first, ast.Constant) and first.value is True)
    return False
