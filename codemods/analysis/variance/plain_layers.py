"""Layers of PyTorch that have no buffers, by the call that makes them: the forward of a wrapper round them sends nothing."""

from __future__ import annotations

import ast

from codemods.analysis.names import last, qualified
from codemods.analysis.wrapped.wraps import without_moves
from codemods.data.torch_modules import WITHOUT_BUFFERS
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.lazy_pattern import lazy

# What gives a layer buffers behind its back: its masks, its vectors, another layer inside.
_GIVES_BUFFERS = lazy(rb"spectral_norm|\bprune\b|(?<!self)\.(?:register_buffer|add_module|register_module)\(")


def is_without_buffers(module: SourceModule, node: ast.expr) -> bool:
    """True for `nn.Linear(8, 2)`, and for a `Sequential` of such layers that is written out."""
    return not _gives_buffers(module) and _is_plain(module, node)


def _is_plain(module: SourceModule, node: ast.expr) -> bool:
    node = without_moves(node)
    if not isinstance(node, ast.Call):
        return False
    name = qualified(module, node.func)
    if not name.startswith("torch.nn."):
        return False
    if last(name) == "Sequential":
        return bool(node.args) and not node.keywords and all(_is_plain(module, part) for part in node.args)
    return last(name) in WITHOUT_BUFFERS


@once_a_module
def _gives_buffers(module: SourceModule) -> bool:
    return _GIVES_BUFFERS.search(module.data) is not None
