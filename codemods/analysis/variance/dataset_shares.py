"""Shares that a data set cuts itself into by the rank: `rows.shard(world, rank)`, `split_dataset_by_node` of datasets."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, How, Proof, Value, differing
from codemods.files.source import walk

_BOUNDS = frozenset({"take", "repeat"})  # as many on every rank: a number is given, or there is no end


def share_of_dataset(state: State, call: CallParts) -> Value | None:
    """The share, which is one row longer on some ranks unless the whole divides; None for any other call."""
    holder = call.holder
    if call.end in _BOUNDS and holder is not None and holder.sized and holder.cause is Cause.DATA:
        return SAME
    if call.end == "Subset" and len(call.args) == 2 and call.args[1].cause is Cause.RANK and not call.args[1].decided:
        return _of_indices(state, call, call.args[1])
    rank, source = _index_of(call)
    if rank is None or rank.cause is not Cause.RANK or source is None or rank.decided:
        return None
    text = f"`{state.short(call.node)}` is each rank's own share"
    link = state.link(call.node, text, how=How.SHARE)
    return differing(Cause.DATA, min(rank.proof, Proof.PROVEN), link, sized=not _is_cut(state, source))


def _of_indices(state: State, call: CallParts, indices: Value) -> Value:
    """`Subset(rows, range(rank * n, (rank + 1) * n))`."""
    text = f"`{state.short(call.node)}` is each rank's own share"
    return differing(Cause.DATA, indices.proof, state.link(call.node, text, how=How.SHARE), sized=indices.sized)


def _index_of(call: CallParts) -> tuple[Value | None, ast.expr | None]:
    """Which share is asked for, and what of."""
    node, args, keywords = call.node, call.args, call.keywords
    if call.name == "datasets.distributed.split_dataset_by_node":
        source = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "dataset"), None)
        return keywords.get("rank", args[1] if len(args) > 1 else None), source
    if call.end == "shard" and isinstance(node.func, ast.Attribute) and len(args) + len(keywords) >= 2:
        return keywords.get("index", args[1] if len(args) > 1 else None), node.func.value
    return None, None


def _is_cut(state: State, source: ast.expr) -> bool:
    """True where the whole was cut or filled up to a multiple before (`//`, `%`), in what its name is given."""
    bound = bindings_of(state.module, source) if isinstance(source, ast.Name) else []
    given = [source, *(b.value for b in bound if b.value is not None)]
    parts = (n for value in given for n in (value, *walk(value)))
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Mod)) for n in parts)
