"""Random numbers that each rank draws under a seed of its own, as far as the seeds are seen; all others are unknown."""

from __future__ import annotations

from codemods.analysis.loading.seeds import is_of_rank, seeds_of_stream, stream_of
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.keeping import put
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import UNKNOWN, Cause, Link, Proof, Value, along, differing, plain
from codemods.data.rank_variance import RANDOM_OF_TORCH, RANDOM_PACKAGES
from codemods.store.project import Project

_GENERATORS = frozenset({"Random", "default_rng", "RandomState"})
_SEEDS = frozenset({"seed", "manual_seed", "set_state", "setstate"})


def drawn(state: State, call: CallParts) -> Value | None:
    """What a draw gives, or a generator that is made or seeded; None for any other call."""
    if call.end == "manual_seed" and call.holder is not None and call.name != "torch.manual_seed":
        return _seeded(state, call)
    if not call.name.startswith(RANDOM_PACKAGES) and call.name not in RANDOM_OF_TORCH:
        return None
    if (source := call.keywords.get("generator")) is not None:
        return plain(source)
    if call.end in _GENERATORS:
        return _under(state, call, call.args[0]) if call.args else UNKNOWN
    if call.end in _SEEDS or not state.is_parallel:
        return UNKNOWN
    return _of_process(state, call)


def _seeded(state: State, call: CallParts) -> Value | None:
    """`generator.manual_seed(seed + rank)`: it gives the generator, and changes it."""
    if not call.args or call.args[0].cause is not Cause.RANK:
        return None
    found = _under(state, call, call.args[0])
    func = call.node.func
    if path := path_of(getattr(func, "value", func)):
        put(state, path, found)
    return found


def _under(state: State, call: CallParts, seed: Value) -> Value:
    if seed.cause is not Cause.RANK or seed.decided or not seed.differs:
        return UNKNOWN
    link = state.link(call.node, f"`{state.short(call.node)}` draws under this rank's own seed")
    return differing(Cause.PLACE, seed.proof, link)


def _of_process(state: State, call: CallParts) -> Value:
    """A draw from the numbers of the process: each rank has its own where all that seeds them takes the rank."""
    stream = stream_of(call.name)
    path = state.module.path
    seed = state.project.keep(("seeded by the rank alone", path, stream), lambda: _own_seed(state.project, path, stream))
    if seed is None:
        return UNKNOWN  # equal where all are seeded alike and have drawn as often
    here = state.link(call.node, f"`{state.short(call.node)}` is drawn by each rank on its own")
    return along(differing(Cause.PLACE, Proof.LIKELY, seed), here)


def _own_seed(project: Project, path: str, stream: str) -> Link | None:
    """What seeds the numbers of a library in the programs of a file, if nothing does that without the rank."""
    seeds = seeds_of_stream(project, path, stream) if stream else ()
    if not seeds or not all(is_of_rank(project, s) for s in seeds):
        return None
    first = seeds[0]
    text = " ".join(first.module.text_of(first.call).split())
    return Link(first.module.path, first.call.lineno, f"`{text}` is this rank's own seed")
