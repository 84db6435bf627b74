"""Losses that a rank replaces by a fresh tensor because of its own data, followed to the backward pass that they are given to."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.guards.criteria import callers, own_parameters
from codemods.analysis.guards.fresh_values import Decider, Fresh, path_of
from codemods.analysis.guards.loss_walk import Ending, LossWalk
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.gradient_sync import may_sync_gradients
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_CLIMBS = 3  # calls that a loss is handed up
_STEPS = ((Role.LIGHTNING_MODULE, "training_step"), (Role.HF_TRAINER, "compute_loss"))


@record
class Replaced:
    """fresh: the tensor that is made of nothing; fresh.by decides over it. backward: where, (path, line), what."""

    fresh: Fresh
    by: Decider
    backward: tuple[str, int, str]


def replaced_losses(project: Project, module: SourceModule) -> Iterator[Replaced]:
    """Those that are made in a file."""
    analysis = variance(project)
    if not may_sync_gradients(project):
        return
    for function in module.functions:
        site = FunctionSite(module, function)
        if "requires_grad" not in module.text_of(function):
            continue
        told: set[int] = set()
        for end in LossWalk(analysis, site, {}, own_parameters(analysis, site)).endings():
            assert end.fresh.by is not None
            met = _backward_of(analysis, site, end, _CLIMBS)
            if met is not None and id(end.fresh.node) not in told:
                told.add(id(end.fresh.node))
                yield Replaced(end.fresh, end.fresh.by, met)


def _backward_of(analysis: Analysis, site: FunctionSite, end: Ending, climbs: int) -> tuple[str, int, str] | None:
    """The backward pass that a loss comes to: here, by the framework that called the function, or in what calls it."""
    module, project = site.module, analysis.project
    if end.backward is not None:
        return (module.path, end.backward.lineno, "backward") if analysis.is_parallel(module) else None
    owner = module.class_of(site.node)
    if owner is not None and module.parent(site.node) is owner:
        facts = class_facts(project, module, owner)
        if any(site.node.name == name and facts.is_a(role) for role, name in _STEPS):
            by_hand = b"automatic_optimization" in module.data
            known = analysis.is_parallel(module) and not by_hand
            return (module.path, end.line, f"the backward behind {site.node.name}") if known else None
    if climbs == 0:
        return None
    for caller, call in callers(analysis, site):
        for further in LossWalk(analysis, caller, {path_of(call): end}).endings():
            if further.fresh.node is end.fresh.node:
                met = _backward_of(analysis, caller, further, climbs - 1)
                if met is not None:
                    return met
    return None
