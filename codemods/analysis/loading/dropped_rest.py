"""Evaluations that leave samples out: each rank drops the last batch of its share, of a set that its sampler shuffles."""

from __future__ import annotations

import ast

from codemods.analysis.loading.origins import Origin
from codemods.analysis.loading.padded_samplers import keeps_order, trained_samplers
from codemods.analysis.loading.passes import training_passes
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler
from codemods.store.project import Project


def dropped_rest(project: Project, loader: Loader, sampler: Origin) -> ast.expr | None:
    """The `drop_last=True` of a loader of the evaluation alone, whose DistributedSampler shuffles."""
    given = loader.argument("drop_last", 8)
    size = loader.argument("batch_size", 1)
    if not isinstance(given, ast.Constant) or given.value is not True or loader.hides:
        return None
    if size is None or (isinstance(size, ast.Constant) and size.value == 1) or not is_distributed_sampler(project, sampler):
        return None
    if keeps_order(sampler) or any(k.arg in (None, "drop_last") for k in getattr(sampler.node, "keywords", ())):
        return None
    return given if _is_of_no_training(project, sampler) else None


def _is_of_no_training(project: Project, sampler: Origin) -> bool:
    """True where the loops that train are seen to go through other samplers, and where none trains."""
    path = sampler.module.path
    if not any(True for _ in training_passes(project, path)):
        return True
    trained = trained_samplers(project, path)
    return bool(trained) and not any(o.node is sampler.node for o in trained)
