"""Passes over the loader that DeepSpeed makes of `training_data`: it has a DistributedSampler, and tells it no epoch.

DeepSpeed up to 0.19.8, `DeepSpeedDataLoader`: the sampler is `data_sampler`, and each `iter(loader)` begins a pass over it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.literals import is_none
from codemods.analysis.loading.epochs import Counter, counter_of
from codemods.analysis.loading.origins import Origin, all_known, origins
from codemods.analysis.loading.passes import Epochs, goes_round_once, loops_round, sources_of
from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_PLACE = 2  # engine, optimizer, loader, scheduler
_ASKS_FIRST = (b"set_epoch", b"data_efficiency", b"curriculum_learning", b"data_sampler")


@record
class EngineLoader:
    """epochs: the loop round the pass over `loader`, whose rounds `counter` counts; made: the call of `initialize`."""

    epochs: Epochs
    loader: ast.expr
    counter: Counter
    made: Origin


def engine_loaders(project: Project, module: SourceModule) -> Iterator[EngineLoader]:
    if any(project.files_containing(word) for word in _ASKS_FIRST):
        return
    done: set[int] = set()
    for loop in module.nodes(ast.For):
        if not any(dotted(n.func).endswith(".backward") for n in walk(loop) if isinstance(n, ast.Call)):
            continue
        for source in sources_of(project, module, loop.iter):
            made = origins(project, module, source) if dotted(source) else ()
            if not all_known(made) or not all(_is_of_engine(o) for o in made):
                continue
            for epochs in loops_round(project, module, loop):
                counter = counter_of(epochs)
                if epochs.module is not module or epochs.way or goes_round_once(epochs.loop):
                    continue
                if counter is not None and id(epochs.loop) not in done:
                    done.add(id(epochs.loop))
                    yield EngineLoader(epochs, source, counter, made[0])


def _is_of_engine(origin: Origin) -> bool:
    call = origin.node
    if not isinstance(call, ast.Call) or origin.path != (_PLACE,):
        return False
    if qualified(origin.module, call.func) != "deepspeed.initialize":
        return False
    given = next((k.value for k in call.keywords if k.arg == "training_data"), None)
    return given is not None and not is_none(given)
