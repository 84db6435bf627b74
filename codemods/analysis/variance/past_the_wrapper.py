"""Losses that are made past the wrapper: `loss = model.module.training_step(batch)`. Their backward waits for nobody.

DistributedDataParallel makes its hooks ready in its own forward; without it each rank keeps the gradients of its own.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.files.source import SourceModule, walk


def is_made_past_the_wrapper(module: SourceModule, backward: ast.Call) -> bool:
    """True for `losses["total"].backward()` where each call that gives `losses`, in a run of several, is of the module inside."""
    held = backward.func.value if isinstance(backward.func, ast.Attribute) else None
    while isinstance(held, ast.Subscript):
        held = held.value
    if not isinstance(held, ast.Name) or module.function_of(held) is None:
        return False
    function = module.function_of(held)
    given = [b for b in bindings_of(module, held) if module.function_of(b.node) is function]
    calls = [b for b in given if not _is_empty(b.value) and not is_of_one_process(module, b.node)]
    return bool(calls) and all(isinstance(b.value, ast.Call) and ".module." in dotted(b.value.func) for b in calls)


def _is_empty(value: ast.expr | None) -> bool:
    """True for `{}`, `None` and tuples of them: no loss yet."""
    return value is not None and not any(isinstance(n, (ast.Call, ast.Name)) for n in (value, *walk(value)))
