"""Passes over a loader whose DistributedSampler shuffles by the epoch that it is told."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.origins import Origin, all_known, origins
from codemods.analysis.loading.passes import Pass
from codemods.analysis.loading.samplers import (
    Loader,
    heir_shuffles,
    is_distributed_sampler,
    is_epoch_heir,
    is_none,
    made_loader,
    samplers_of,
    shuffles_by_call,
    shuffles_by_callers,
)
from codemods.analysis.names import dotted
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 3  # how often a loader may be handed on from the call that made it


@record
class Untold:
    """A pass over loaders with a DistributedSampler that shuffles. sure: every run has one. none: other runs have no sampler."""

    found: Pass
    loader: Loader
    sampler: Origin
    sure: bool
    none: bool
    paths: frozenset[str]
    heir: bool = False


def untold_in(project: Project, found: Pass) -> Untold | None:
    made = origins(project, found.module, found.source)
    if not all_known(made):
        return None
    loaders = [made_loader(project, o) for o in made if not is_none(o)]
    known = [x for x in loaders if x is not None and not x.hides]
    if not known or len(known) != len(loaders):
        return None
    everything = [(x, o) for x in known for o in samplers_of(project, x)]
    sharing = [(x, o) for x, o in everything if _is_told_epochs(project, found, x, o)]
    if not sharing:
        return None
    loader, sampler = sharing[0]
    sure = len(sharing) == len(everything) and all(x.sampler or x.batch_sampler for x in known)
    none = all(is_none(o) for pair in everything if pair not in sharing for o in pair[1:])
    paths = frozenset({sampler.module.path, *(x.module.path for x in known)})
    heir = not is_distributed_sampler(project, sampler)
    return Untold(found, loader, sampler, sure and not any(map(is_none, made)), none, paths, heir)


def _is_told_epochs(project: Project, found: Pass, loader: Loader, sampler: Origin) -> bool:
    """True for torch's sampler that shuffles, and for a class of the project that takes its order from the epoch."""
    if is_distributed_sampler(project, sampler):
        said = shuffles_by_callers(project, sampler, loader)
        return bool(_by_the_helpers_call(project, found, loader, sampler) if said is None else said)
    return is_epoch_heir(project, sampler) and bool(heir_shuffles(project, sampler))


def _by_the_helpers_call(project: Project, found: Pass, loader: Loader, sampler: Origin) -> bool | None:
    """Whether the sampler shuffles by the call that gave this very loader: `loader_of(data, shuffle=True)` beside others."""
    function = sampler.module.function_of(sampler.node)
    if function is None or loader.module is not sampler.module or loader.module.function_of(loader.call) is not function:
        return None
    said = set[bool | None]()
    for module, call in _giving_calls(project, found.module, found.source, _DEPTH) or ():
        called = called_function(project, module, call)
        said.add(shuffles_by_call(project, sampler, module, call) if called and called.node is function else None)
    return said.pop() if len(said) == 1 else None


def _giving_calls(
    project: Project, module: SourceModule, node: ast.expr, depth: int
) -> list[tuple[SourceModule, ast.Call]] | None:
    """The calls that give a loader, over names, fields and parameters; None where there may be others."""
    if isinstance(node, ast.Call):
        return [(module, node)]
    bound: list[Binding] = []
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
    elif isinstance(node, ast.Attribute):
        bound = attribute_bindings(module, node)
    found: list[tuple[SourceModule, ast.Call]] = []
    for one in bound if depth else ():
        if isinstance(one.value, ast.Constant) and one.value.value is None:
            continue
        value = unpacked(one.value) if one.value is not None else None
        if isinstance(value, ast.Name) and value is not one.value and dotted(node) == value.id:
            continue  # `loader = tqdm(loader)`
        given = [(module, value)] if value is not None else []
        if one.parameter and isinstance(node, ast.Name) and (function := module.function_of(one.node)) is not None:
            given = list(arguments(project, module, function, node.id))
        parts = [_giving_calls(project, m, v, depth - 1) for m, v in given]
        if not parts or None in parts:
            return None
        found += [call for part in parts if part is not None for call in part]
    return found or None
