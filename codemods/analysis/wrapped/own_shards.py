"""An optimizer's own `state_dict()` beside the full state of an FSDP model: it holds this rank's shards alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.wrapped.saving_calls import entries, of_state, saving_calls
from codemods.analysis.wrapped.wrapper_tests import arms_exclude
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# What gathers or shares such a state out, and the strategy that cuts nothing.
_GATHERS = (b"optim_state_dict(", b"optim_state_dict_to_load", b"get_optimizer_state_dict", b"get_state_dict(", b"NO_SHARD")
_OPTIMIZER = lazy(r"optim|^opt$")


@record
class OwnShard:
    """state: `optimizer.state_dict()`. saved: the call that writes it. full: where the model's whole state is asked for."""

    state: ast.expr
    saved: ast.Call
    full: ast.Call


def own_shards(project: Project, module: SourceModule) -> Iterator[OwnShard]:
    fulls = list(_full_states(module)) if module.holds(b"FULL_STATE_DICT") else []
    if not fulls or any(not is_test_file(p) for word in _GATHERS for p in project.files_containing(word)):
        return
    for call, written in saving_calls(project, module, torch_only=True):
        if not _is_kept_to_rank_zero(project, module, call):
            continue
        for _, value in entries(module, written):
            holder = of_state(value)
            if holder is None or not _OPTIMIZER.search(last(dotted(holder)).lower()):
                continue
            full = next((f for f in fulls if _on_one_way(module, f, value)), None)
            if full is not None:
                yield OwnShard(value, call, full)


def _full_states(module: SourceModule) -> Iterator[ast.Call]:
    """`FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT)`."""
    for call in module.calls_named("state_dict_type", "set_state_dict_type"):
        owner = qualified(module, call.func).rpartition(".")[0]
        given = (*call.args, *(k.value for k in call.keywords))
        if last(owner) == "FullyShardedDataParallel" and any(last(dotted(a)) == "FULL_STATE_DICT" for a in given):
            yield call


def _on_one_way(module: SourceModule, full: ast.Call, value: ast.expr) -> bool:
    return module.function_of(full) is module.function_of(value) and not arms_exclude(module, full, value)


def _is_kept_to_rank_zero(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True under a test for rank 0, here or in the function that saves what it is handed."""
    if ranks_at(module, call, project=project).some:
        return True
    site = called_function(project, module, call)
    saves = site.module.calls_named("save") if site is not None else ()
    return site is not None and any(
        site.module.function_of(c) is site.node and ranks_at(site.module, c, project=project).some for c in saves
    )
