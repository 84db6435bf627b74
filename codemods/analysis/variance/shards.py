"""Streams of webdataset: `split_by_node` gives each rank shards of its own, and nothing says that they hold as many samples."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import qualified
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.paths import is_false
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, How, Kind, Proof, Thing, Value, differing
from codemods.files.source import walk
from codemods.runtime.record import replace

_STREAMS = frozenset({"WebDataset", "DataPipeline"})
# As many samples or batches on every rank: a number is given, or the stream has no end. What `compose` puts in is not seen.
_BOUNDS = frozenset({"with_epoch", "slice", "repeat", "repeatedly", "ddp_equalize", "compose"})
_ENDLESS = frozenset({"ResampledShards", "RandomShardList", "MultiShardSample"})


def stream_of_shards(state: State, call: CallParts) -> Value | None:
    """What a stream of webdataset gives each rank, and what bounds one; None for any other call."""
    is_stream = call.name.partition(".")[0] == "webdataset" and call.end in _STREAMS
    if not is_stream or not state.module.holds(b"split_by_node") or not _is_split(state, call.node):
        return _made_of_one(call)
    if _is_endless(state, call.node):
        return SAME
    text = f"`{state.short(call.node)}` reads each rank's own shards, which need not hold as many samples as those of the others"
    return differing(Cause.DATA, Proof.PROVEN, state.link(call.node, text, how=How.SHARDS), sized=True)


def _made_of_one(call: CallParts) -> Value | None:
    """A loader of such a stream; `stream.with_epoch(1000)`: as many on all ranks."""
    if call.end == "WebLoader" and call.args and _is_uneven(call.args[0]):
        return replace(call.args[0], thing=Thing(Kind.LOADER))
    return SAME if call.holder is not None and call.end in _BOUNDS and _is_uneven(call.holder) else None


def is_of_shards(value: Value) -> bool:
    """True for what such a stream gives, whether the ranks get as much of it or not."""
    return any(link.how is How.SHARDS for link in value.chain)


def _is_uneven(value: Value) -> bool:
    return value.sized and is_of_shards(value)


def _is_split(state: State, node: ast.Call) -> bool:
    """True where the shards are shared out by node: `nodesplitter=wds.split_by_node`, or a stage of a pipeline."""
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "nodesplitter")]
    return any(_names_split(state, part) for part in given)


def _names_split(state: State, node: ast.expr) -> bool:
    """True for webdataset's `split_by_node`, also as one of two ways, and under a name that is given it."""
    names = [qualified(state.module, n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
    if any(name.startswith("webdataset.") and name.endswith("split_by_node") for name in names):
        return True
    bound = bindings_of(state.module, node) if isinstance(node, ast.Name) else []
    return any(_names_split(state, b.value) for b in bound if b.value is not None and not isinstance(b.value, ast.Name))


def _is_endless(state: State, node: ast.Call) -> bool:
    """True for shards that are drawn again and again (`resampled=True`), or may be, and for options that are not seen."""
    if any(k.arg is None or (k.arg == "resampled" and not is_false(k.value)) for k in node.keywords):
        return True
    if any(isinstance(a, ast.Starred) for a in node.args):
        return True
    parts = (n for a in node.args for n in walk(a) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(qualified(state.module, n).rpartition(".")[2] in (_ENDLESS | _BOUNDS) for n in parts)
