"""Is a loader of the data handed to `prepare`? Accelerate gives each process a part of its batches then, whatever it does."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.loading.samplers import is_loader
from codemods.files.source import SourceModule, once_a_module


@once_a_module
def prepares_a_loader(module: SourceModule) -> bool:
    """True for `loader = accelerator.prepare(loader)` of a `DataLoader` that the file makes."""
    calls = (c for c in module.calls_named("prepare", "prepare_data_loader") if isinstance(c.func, ast.Attribute))
    return any(_is_loader(module, arg) for call in calls for arg in call.args)


def _is_loader(module: SourceModule, node: ast.expr) -> bool:
    made = assigned(module, node, node.id) if isinstance(node, ast.Name) else [node]
    return any(isinstance(value, ast.Call) and is_loader(module, value) for value in made)
