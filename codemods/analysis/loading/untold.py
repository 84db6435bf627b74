"""Passes over a loader whose DistributedSampler shuffles by the epoch that it is told."""

from __future__ import annotations

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
    shuffles_by_callers,
)
from codemods.project import Project
from codemods.record import record


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
    sharing = [(x, o) for x, o in everything if _is_told_epochs(project, x, o)]
    if not sharing:
        return None
    loader, sampler = sharing[0]
    sure = len(sharing) == len(everything) and all(x.sampler or x.batch_sampler for x in known)
    none = all(is_none(o) for pair in everything if pair not in sharing for o in pair[1:])
    paths = frozenset({sampler.module.path, *(x.module.path for x in known)})
    heir = not is_distributed_sampler(project, sampler)
    return Untold(found, loader, sampler, sure and not any(map(is_none, made)), none, paths, heir)


def _is_told_epochs(project: Project, loader: Loader, sampler: Origin) -> bool:
    """True for torch's sampler that shuffles, and for a class of the project that takes its order from the epoch."""
    if is_distributed_sampler(project, sampler):
        return bool(shuffles_by_callers(project, sampler, loader))
    return is_epoch_heir(project, sampler) and bool(heir_shuffles(project, sampler))
