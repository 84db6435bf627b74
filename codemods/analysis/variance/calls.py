"""The value of a call: what kind of call it is, and who knows what it gives."""

from __future__ import annotations

import ast

from codemods.analysis.names import family
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.variance.call_parts import CallParts, parts_of
from codemods.analysis.variance.callback_handlers import asks_callbacks
from codemods.analysis.variance.copies import value_of_copy
from codemods.analysis.variance.dataset_shares import share_of_dataset
from codemods.analysis.variance.lookup import as_rank, from_environment
from codemods.analysis.variance.meetings import collective_value, forward, is_backward, meet_here, shown
from codemods.analysis.variance.objects import made
from codemods.analysis.variance.open_entries import got_entry
from codemods.analysis.variance.paths import names_device
from codemods.analysis.variance.project_calls import project_call, target
from codemods.analysis.variance.random_streams import drawn
from codemods.analysis.variance.shards import stream_of_shards
from codemods.analysis.variance.shares import counted, length_of, pieces, size_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.unknown_calls import call_of_thing, unknown_call
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, How, Kind, Proof, Thing, Value, differing, made_of, plain
from codemods.analysis.variance.whole_groups import is_of_all
from codemods.analysis.variance.wrapped_calls import of_wrapper, wrapped_by_method
from codemods.data.rank_names import speaks_of_rank
from codemods.data.rank_variance import (
    BACKWARDS,
    CLOCKS,
    LOOKS_AT_FILES,
    MOVES,
    OWN_ANSWERS,
    PROGRESS,
    SELECTS,
    SHOWS,
)  # fmt: skip
from codemods.runtime.record import replace


def call_value(state: State, node: ast.Call) -> Value:
    """What the call gives. The first rule that knows it answers; what none knows is made of what it is handed."""
    call = parts_of(state, node)
    if (copy := value_of_copy(state, node)) is not None:
        return copy
    for rule in (_of_elements, _of_sizes, _of_rank, _of_entries, _of_mpi, _of_meeting, _of_moves, _of_the_process, _of_trainers,
                 stream_of_shards, share_of_dataset, made):  # fmt: skip
        if (found := rule(state, call)) is not None:
            return found
    forward(state, node)
    if (given := of_wrapper(state, call)) is not None:
        return given
    site = target(state, node, call.holder)
    if site is not None:
        state.targets[id(node)] = site
        return project_call(state, call, site)
    for rule in (call_of_thing, wrapped_by_method):
        if (found := rule(state, call)) is not None:
            return found
    return unknown_call(state, call)


def _of_elements(state: State, call: CallParts) -> Value | None:
    """`enumerate`, `zip` and the keys of a dict keep apart what a loop hands out; `getattr(model, "module")` opens a wrapper."""
    del state
    args, written = call.args, call.node.args
    if call.name == "enumerate" and args:
        return replace(plain(args[0]), thing=Thing(Kind.ENUMERATED), parts=(SAME, args[0]))
    if call.name == "zip" and args:
        return replace(made_of(*args), thing=Thing(Kind.ZIPPED), parts=tuple(args))
    if call.name == "getattr" and len(written) > 1 and isinstance(written[1], ast.Constant) and written[1].value == "module":
        return Value(thing=Thing(Kind.MODULE, args[0].thing.site if args[0].thing else None))
    if call.end == "keys" and call.holder is not None and not call.holder.keyed:
        return replace(plain(call.holder), length=True) if call.holder.params and not call.holder.cause.differs else SAME
    return None


_BLANKS = frozenset({"empty_like", "zeros_like", "ones_like"})  # room for as much as is given, without what it holds


def _of_mpi(state: State, call: CallParts) -> Value | None:
    """`MPI.COMM_WORLD.bcast(x)` of mpi4py: the same on all ranks."""
    of_all = call.end in ("bcast", "allreduce", "allgather") and isinstance(call.node.func, ast.Attribute)
    return SAME if of_all and state.module.holds(b"mpi4py") else None


def _of_sizes(state: State, call: CallParts) -> Value | None:
    """How many there are, and what keeps only some of them."""
    node, end, holder = call.node, call.end, call.holder
    if end == "len" and len(call.args) == 1:
        return length_of(call.args[0])
    if end in _BLANKS:
        return SAME
    if end in ("range", "arange", "islice"):
        return counted(state, node, end, call.args)
    if end in ("split", "chunk", "unfold") and holder is not None and node.args:
        return pieces(state, node, holder, call.args)
    if end in SELECTS:
        found = made_of(*([holder] if holder else []), *call.args)
        return replace(found, sized=True) if found.cause.differs or found.params else found
    if end in ("size", "numel", "dim", "ndimension") and holder is not None:
        return size_of(node, holder)
    return None


def _of_rank(state: State, call: CallParts) -> Value | None:
    if call.end in ("get", "getenv"):
        return from_environment(state, call.node)
    if call.end == "format" and (names_device(call.node.func) or _has_no_place(call.node.func)):
        return SAME
    if isinstance(state.module.parent(call.node), ast.Expr):
        return None  # `ranker.rank()`, whose answer nobody takes, does something
    return as_rank(state, call.node) if speaks_of_rank(call.end) else None


def _of_entries(state: State, call: CallParts) -> Value | None:
    """`config.get("lr", 0.1)`: one entry, or what is given in its place."""
    if call.holder is None or call.keywords or (entry := got_entry(call.node, call.holder, state.env)) is None:
        return None
    return made_of(entry, *call.args[1:])


def _has_no_place(func: ast.expr) -> bool:
    """True for `"last.pth".format(rank)`: the text is the same whatever it is given."""
    text = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and "{" not in text.value


def _of_meeting(state: State, call: CallParts) -> Value | None:
    """A collective, and the backward of a wrapped model."""
    collective = collective_at(state.module, call.node, state.project)
    if collective is not None and (not collective.grouped or is_of_all(state.project, state.module, call.node)):
        return collective_value(state, call.node, collective, call.args)
    if call.end in BACKWARDS and is_backward(state, call.node, call.name):
        meet_here(state, call.node, "backward")
        return SAME
    return None


def _of_moves(state: State, call: CallParts) -> Value | None:
    """What is handed on as it is: behind a bar, or to another device."""
    if call.end in PROGRESS and (call.args or "iterable" in call.keywords):
        return call.args[0] if call.args else call.keywords["iterable"]
    if call.end in SHOWS:
        for value, written in zip(call.args, call.node.args, strict=True):
            shown(state, written, value)
    if call.end in MOVES and call.holder is not None:
        return call.holder
    return SAME if call.name == "torch.device" else None


def _of_the_process(state: State, call: CallParts) -> Value | None:
    """What each process has of its own: clocks, names, random numbers, a look at the disk."""
    if call.name in CLOCKS or call.name in OWN_ANSWERS:
        clock = call.name in CLOCKS
        text = f"`{state.short(call.node)}` is each process's own{' clock' if clock else ''}"
        how = How.CLOCK if clock else How.WRITTEN
        return differing(Cause.PLACE, Proof.PROVEN, state.link(call.node, text, how=how))
    if (found := drawn(state, call)) is not None:
        return found
    if call.end in LOOKS_AT_FILES and family(call.name) in ("os", "glob"):
        return UNKNOWN  # on a shared disk mostly equal, but for what is written meanwhile
    return None


def _of_trainers(state: State, call: CallParts) -> Value | None:
    """A Trainer of Lightning: what it is asked for later (`interrupted`, `current_epoch`) is not made of its logger's name.

    What the callbacks of transformers answer is a control, whatever they are handed to log: no rank has one of its own.
    """
    if asks_callbacks(state, call.node):
        return UNKNOWN
    path = call.name.removesuffix(".from_argparse_args")
    return SAME if family(path) == "lightning" and path.endswith(".Trainer") else None
