"""Calls of `torch.nn.utils.clip_grad_norm_` over the parameters of FullyShardedDataParallel, of which each rank has a part.

Measured on two processes (torch 2.13, gloo): of a norm of 51.8 one rank got 16.4 and the other 49.1, with `use_orig_params` as
well; the wrapper's own `clip_grad_norm_` gave 51.8 on both, and so did the function after `fully_shard`, whose gradients are DTensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.fsdp_wraps import asks_for_wrapper
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.handed_in import callers_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_CLASS = "FullyShardedDataParallel"
_CLIPS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"})
_SHARDS = ("FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD")
_DEPTH = 3


@record
class ClippedShards:
    """model: whose parameters the call clips. wrap: where it is wrapped. sure: nothing else is seen to reach the call."""

    call: ast.Call
    model: ast.expr
    module: SourceModule
    wrap: ast.Call
    sure: bool


def clipped_shards(project: Project, module: SourceModule) -> Iterator[ClippedShards]:
    for call in module.calls_named("clip_grad_norm_"):
        model = _clipped(module, call)
        if model is None or asks_for_wrapper(module, call):
            continue
        found = list(_held(project, module, model, _DEPTH))
        wraps = [(place, node) for place, node in found if node is not None]
        if wraps:
            yield ClippedShards(call, model, *_first(wraps), sure=len(wraps) == len(found))


def _first(wraps: list[tuple[SourceModule, ast.Call]]) -> tuple[SourceModule, ast.Call]:
    return min(wraps, key=lambda w: (w[0].path, w[1].lineno))


def _clipped(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """`model` of `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`."""
    if qualified(module, call.func) not in _CLIPS:
        return None
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "parameters"), None)
    if not isinstance(given, ast.Call) or given.args or given.keywords or not isinstance(given.func, ast.Attribute):
        return None
    model = given.func.value
    return model if given.func.attr == "parameters" and isinstance(model, (ast.Name, ast.Attribute)) and dotted(model) else None


def _held(project: Project, module: SourceModule, node: ast.expr, depth: int) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    """The wraps that an expression may hold the result of, and None for each other value that it may have."""
    if isinstance(node, ast.Call):
        yield module, node if _is_sharding(module, node) else None
        return
    if isinstance(node, ast.Name):
        bound = reaching(module, node, bindings_of(module, node))
    elif isinstance(node, ast.Attribute):
        bound = attribute_bindings(module, node)
    else:
        bound = []
    if not bound or depth == 0:
        yield module, None
    for one in bound if depth else ():
        yield from _of_binding(project, module, node, one, depth)


def _of_binding(
    project: Project, module: SourceModule, node: ast.expr, one: Binding, depth: int
) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    function = module.function_of(one.node) if one.parameter else None
    if one.parameter and isinstance(node, ast.Name):
        function = function or module.function_of(node)
        yield from _handed(project, module, function, node.id, depth)
    elif one.value is not None and not one.part and one.value is not node:
        yield from _held(project, module, one.value, depth - 1)
    else:
        yield module, None


def _handed(
    project: Project, module: SourceModule, function: FunctionNode | None, name: str, depth: int
) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    calls = callers_of(project, module, function) if function is not None and not keeps_its_results(function) else []
    if function is None or not calls:
        yield module, None
        return
    method = isinstance(module.parent(function), ast.ClassDef)
    for site in calls:
        given = (bind(function, site.call, bound=method) or {}).get(name)
        if given is None or asks_for_wrapper(site.module, site.call):
            yield site.module, None
        else:
            yield from _held(project, site.module, given, depth - 1)


def _is_sharding(module: SourceModule, call: ast.Call) -> bool:
    """True where FSDP shares out the gradients: under every strategy but NO_SHARD, which a setting might pick."""
    name = qualified(module, call.func)
    if last(name) != _CLASS or not name.startswith("torch.distributed.fsdp"):
        return False
    strategy = next((k.value for k in call.keywords if k.arg == "sharding_strategy"), None)
    if any(k.arg is None for k in call.keywords) or len(call.args) > 2:
        return False  # the strategy may be in there
    return strategy is None or is_none(strategy) or any(last(dotted(strategy)) == name for name in _SHARDS)
