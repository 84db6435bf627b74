"""What `FullyShardedDataParallel(...)` of the same file wraps, layer by layer, so that each rank keeps a part of each layer.

Measured on two processes (torch 2.13): `state_dict()` of it on rank 0 alone waits for the others, after a step and after an
evaluation. It does not after an evaluation where the root alone is wrapped (no policy), or under SHARD_GRAD_OP: the last forward
has left rank 0 the whole weights. `torch.nn.utils.clip_grad_norm_` gives each rank the norm of its own shards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.literals import is_none
from codemods.analysis.names import last, qualified
from codemods.analysis.reaching import reaching
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_CLASS = "FullyShardedDataParallel"
_FULL = "FULL_SHARD"
# A test of these words may keep the wrapper from a place.
_ASKS = lazy(r"(?i)fsdp|ddp|shard|parallel|hasattr|isinstance|type\(|world_?size|n_?gpus?\b|num_?process|strateg|distribut")
_DEPTH = 4


def fsdp_wrap_of(module: SourceModule, model: ast.expr) -> ast.Call | None:
    """The call of FSDP that `model` may hold the result of, with no test in between that asks for the kind of the wrapper."""
    if not module.holds(_CLASS.encode()):
        return None
    wrap = next(_made(module, model, 0), None)
    if wrap is None or not _is_wrapped_by_layer(wrap) or not _may_be_full(module, wrap):
        return None
    return None if asks_for_wrapper(module, model) else wrap


def asks_for_wrapper(module: SourceModule, node: ast.expr) -> bool:
    """True where a test round a place, or of an exit above it, may keep the wrapper from there."""
    return any(_ASKS.search(module.text_of(test)) for test in _tests_over(module, node))


def _is_wrapped_by_layer(wrap: ast.Call) -> bool:
    return any(k.arg == "auto_wrap_policy" and not is_none(k.value) for k in wrap.keywords)


def _may_be_full(module: SourceModule, wrap: ast.Call) -> bool:
    """True where the strategy is left as it is, is FULL_SHARD, or is picked by a setting in a file that knows FULL_SHARD."""
    strategy = next((k.value for k in wrap.keywords if k.arg == "sharding_strategy"), None)
    if strategy is None or is_none(strategy):
        return True
    return _FULL in module.text_of(strategy) or ("SHARD" not in module.text_of(strategy) and module.holds(_FULL.encode()))


def _made(module: SourceModule, node: ast.expr, depth: int) -> Iterator[ast.Call]:
    if depth > _DEPTH:
        return
    if isinstance(node, ast.Call):
        name = qualified(module, node.func)
        if last(name) == _CLASS and name.startswith("torch.distributed.fsdp"):
            yield node
        elif name == "torch.compile" and node.args:
            yield from _made(module, node.args[0], depth + 1)
    elif isinstance(node, ast.Name):
        bound = reaching(module, node, bindings_of(module, node))
        for one in bound:
            if one.value is not None and not one.part:
                yield from _made(module, one.value, depth + 1)
    elif isinstance(node, ast.Attribute):
        for one in attribute_bindings(module, node):
            if isinstance(one.value, ast.Call) and not one.part:
                yield from _made(module, one.value, depth + 1)


def _tests_over(module: SourceModule, node: ast.expr) -> Iterator[ast.expr]:
    """The tests round a place, and those of the exits above it in its function."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)):
            yield up.test
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from (s.test for s in walk(up) if isinstance(s, ast.If) and s.lineno < node.lineno and _leaves(s))
            return


def _leaves(test: ast.If) -> bool:
    return isinstance(test.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
