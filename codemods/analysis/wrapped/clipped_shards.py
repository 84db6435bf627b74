"""Calls of `torch.nn.utils.clip_grad_norm_` over the parameters of FullyShardedDataParallel, of which each rank has a part.

Measured on two processes (torch 2.13, gloo): of a norm of 51.8 one rank got 16.4 and the other 49.1, with `use_orig_params` as
well. The wrapper's own `clip_grad_norm_` gave 51.8 on both, and so did the function after `fully_shard`, whose gradients are
DTensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind, returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.fsdp_wraps import asks_for_wrapper
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.handed_in import callers_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_CLASS = "FullyShardedDataParallel"
_CLIPS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"})
_SHARDS = frozenset({"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD"})
_DEPTH = 6  # names, callers and functions that give the model back


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
        yield from _given(project, module, node, depth)
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


def _given(project: Project, module: SourceModule, call: ast.Call, depth: int) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    """What a call gives: the wrap itself, what a function of the project returns, or a compiled model, not sure to be one."""
    if _is_wrap(module, call):
        shards = _shards(module, call)
        yield module, call if shards is not False else None
        if shards is None:
            yield module, None
        return
    if qualified(module, call.func) == "torch.compile" and call.args and depth:
        yield from _held(project, module, call.args[0], depth - 1)
    site = called_function(project, module, call) if depth else None
    results = returned(site.node, site.module) if site is not None and not keeps_its_results(site.node) else []
    if site is None or not results:
        yield module, None
        return
    for result in results:
        yield from _held(project, site.module, result, depth - 1)


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


def _is_wrap(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    return last(name) == _CLASS and name.startswith("torch.distributed.fsdp")


def _shards(module: SourceModule, call: ast.Call) -> bool | None:
    """Does FSDP share out the gradients? It does under every strategy but NO_SHARD; None where a setting picks from several."""
    if any(k.arg is None for k in call.keywords) or len(call.args) > 2:
        return False  # the strategy may be in there
    strategy = next((k.value for k in call.keywords if k.arg == "sharding_strategy"), None)
    if strategy is None or is_none(strategy) or last(dotted(strategy)) in _SHARDS:
        return True
    bound = [b.value for b in bindings_of(module, strategy) if b.value is not None] if isinstance(strategy, ast.Name) else []
    named = any(isinstance(n, ast.Attribute) and n.attr in _SHARDS for value in bound for n in (value, *walk(value)))
    return None if named else False
