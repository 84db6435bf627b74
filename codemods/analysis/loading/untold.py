"""Passes over a loader whose DistributedSampler shuffles by the epoch that it is told."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.item_keys import Key
from codemods.analysis.loading.listed_loaders import Listed, listed
from codemods.analysis.loading.loader_wrappers import gone_through, handed_in
from codemods.analysis.loading.origins import Origin, all_known, origins, place_of
from codemods.analysis.loading.own_loaders import own_loader
from codemods.analysis.loading.passes import Epochs, Pass, epochs_of, loops_round
from codemods.analysis.loading.samplers import (
    Loader,
    heir_shuffles,
    is_distributed_sampler,
    is_epoch_heir,
    is_loader,
    is_none,
    made_loader,
    samplers_of,
    shuffles_by_call,
    shuffles_by_callers,
)
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.variance.paths import unpacked
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 8  # how often a loader may be handed on from the call that made it
Given = tuple[SourceModule, ast.Call]


@record
class Untold:
    """A pass over loaders with a DistributedSampler that shuffles. sure: every run has one. none: other runs have no sampler.

    wrapped: the pass goes through an object of the project that goes through the loader. listed: the loader is one of a list.
    """

    found: Pass
    loader: Loader
    sampler: Origin
    sure: bool
    none: bool
    paths: frozenset[str]
    heir: bool = False
    wrapped: bool = False
    listed: Listed | None = None

    def rounds(self, project: Project) -> tuple[Epochs, ...]:
        """The loops in whose rounds the loader is gone through again; that over a list comes to each of its loaders once."""
        nearest = epochs_of(project, self.found)
        if self.listed is None or all(one.loop is not self.listed.over for one in nearest):
            return nearest
        return loops_round(project, self.found.module, self.listed.over)


def untold_in(project: Project, found: Pass) -> Untold | None:
    given = origins(project, found.module, found.source)
    kept = listed(found.module, found.source) if not all_known(given) and not found.stepped else None
    if kept is not None:
        given = tuple(o for made in kept.made for o in origins(project, found.module, made))
    through = gone_through(project, given)
    made = tuple(o for o in through if not (o.path and isinstance(o.node, ast.Call) and is_loader(o.module, o.node)))
    if not all_known(made) and left(found.module, found.loop, "where {} comes from is not seen to the end", found.source):
        return None
    loaders = [made_loader(project, o) or own_loader(project, o) for o in made if not is_none(o)]
    known = [x for x in loaders if x is not None]
    if (not known or len(known) != len(loaders)) and left(found.module, found.loop, "{} is no loader that is seen", found.source):
        return None
    everything = [(x, o) for x in known for o in samplers_of(project, x)]
    sharing = [(x, o) for x, o in everything if _is_told_epochs(project, found, x, o)]
    if not sharing and left(found.module, found.loop, "no sampler of {} is seen to share out and shuffle", found.source):
        return None
    loader, sampler = sharing[0]
    sure = len(sharing) == len(everything) and all(x.sampler or x.batch_sampler for x in known)
    hidden = any(x.hides_its_sampler for x in known)
    none = not hidden and all(is_none(o) for pair in everything if pair not in sharing for o in pair[1:])
    paths = frozenset({sampler.module.path, *(x.module.path for x in known)})
    heir = not is_distributed_sampler(project, sampler)
    return Untold(found, loader, sampler, sure and not any(map(is_none, made)), none, paths, heir, through != given, kept)


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
    for module, call in _giving_calls(project, found.module, found.source, function, _DEPTH) or ():
        if is_loader(module, call):
            continue  # another one, which a program of its own hands over at the same place
        called = called_function(project, module, call)
        said.add(shuffles_by_call(project, sampler, module, call) if called and called.node is function else None)
    return said.pop() if len(said) == 1 else None


def _giving_calls(
    project: Project, module: SourceModule, node: ast.expr, maker: FunctionNode, depth: int, path: tuple[Key, ...] = ()
) -> list[Given] | None:
    """The calls that give a loader, over names, fields, parameters and helpers; None where there may be others.

    maker: the function that makes it. path: which part of the value is the loader, where that is one of a tuple.
    """
    if isinstance(node, ast.Call):
        return _behind_helpers(project, module, node, maker, depth, path)
    if path and isinstance(node, ast.Tuple) and isinstance(path[0], int):
        inner = node.elts[path[0]] if path[0] < len(node.elts) else None
        return _giving_calls(project, module, inner, maker, depth, path[1:]) if inner is not None else None
    bound: list[Binding] = []
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
    elif isinstance(node, ast.Attribute):
        bound = attribute_bindings(module, node)
    found: list[Given] = []
    for one in bound if depth else ():
        if isinstance(one.value, ast.Constant) and one.value.value is None:
            continue
        value = unpacked(one.value) if one.value is not None else None
        if isinstance(value, ast.Name) and value is not one.value and dotted(node) == value.id:
            continue  # `loader = tqdm(loader)`
        if isinstance(node, ast.Name) and isinstance(value, ast.Call) and any(dotted(a) == node.id for a in value.args):
            if handed_in(project, Origin(module, value)) is not None:
                continue  # `loader = Prefetcher(loader)`
        given = [(module, value)] if value is not None else []
        if one.parameter and isinstance(node, ast.Name) and (function := module.function_of(one.node)) is not None:
            given = list(arguments(project, module, function, node.id))
        place = place_of(one, node.id) if isinstance(node, ast.Name) else None
        parts = [_giving_calls(project, m, v, maker, depth - 1, path if place is None else (place, *path)) for m, v in given]
        if not parts or None in parts:
            return None
        found += [call for part in parts if part is not None for call in part]
    return found or None


def _behind_helpers(
    project: Project, module: SourceModule, call: ast.Call, maker: FunctionNode, depth: int, path: tuple[Key, ...]
) -> list[Given] | None:
    """The call itself where it is of the maker, and those in the helper that it is of, and in what wraps a loader."""
    called = called_function(project, module, call)
    if depth and (handed := handed_in(project, Origin(module, call))) is not None:
        return _giving_calls(project, *handed, maker, depth - 1, path)
    if called is None or called.node is maker or not depth:
        return [(module, call)]
    found: list[Given] = []
    for value in returned(called.node, called.module):
        part = _giving_calls(project, called.module, value, maker, depth - 1, path)
        if part is None:
            return None
        found += part
    return found or None
