"""Losses that are made past the wrapper: `loss = model.module.training_step(batch)`. Their backward waits for nobody.

DistributedDataParallel makes its hooks ready in its own forward; without it each rank keeps the gradients of its own.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.analysis.ranks.several_processes import is_of_one_process
from codemods.data.rank_variance import MOVES
from codemods.files.source import SourceModule, walk, walk_scope

_STEPS = 2  # names from the loss to the call of the model


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
    if not calls:
        return False
    if all(isinstance(b.value, ast.Call) and ".module." in dotted(b.value.func) for b in calls):
        return True
    return all(b.value is not None and not b.part and _runs_itself(module, b.value, _STEPS) for b in calls)


def all_made_past_the_wrapper(module: SourceModule, step: ast.Call) -> bool:
    """True for the step of an optimizer whose gradients are made so, all of them: no rank has the weights of another."""
    function = module.function_of(step)
    inside = (n for n in walk_scope(function) if isinstance(n, ast.Call)) if function is not None else ()
    calls = [c for c in inside if dotted(c.func).endswith(".backward")]
    return bool(calls) and all(is_made_past_the_wrapper(module, c) for c in calls)


def _runs_itself(module: SourceModule, value: ast.expr, steps: int) -> bool:
    """True for what comes of `model(x)`, where `model = self.to(device)` of a method: the module is called without a wrapper."""
    for name in (n for n in (value, *walk(value)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        given = [b for b in bindings_of(module, name) if module.function_of(b.node) is module.function_of(value)]
        if not given or any(b.value is None or b.part or b.parameter for b in given):
            continue
        up = module.parent(name)
        if isinstance(up, ast.Call) and up.func is name:
            if all(b.value is not None and _is_self(b.value) for b in given):
                return True
        elif steps and all(b.value is not None and _runs_itself(module, b.value, steps - 1) for b in given):
            return True
    return False


def _is_self(node: ast.expr) -> bool:
    moved = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MOVES
    held = node.func.value if moved and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    return isinstance(held, ast.Name) and held.id == "self"


def _is_empty(value: ast.expr | None) -> bool:
    """True for `{}`, `None` and tuples of them: no loss yet."""
    return value is not None and not any(isinstance(n, (ast.Call, ast.Name)) for n in (value, *walk(value)))
