"""Is a loader of torch given a DistributedSampler wherever it is made?"""

from __future__ import annotations

import ast

from codemods.analysis.loading.origins import Origin, origins
from codemods.analysis.loading.sampler_helpers import is_left_out, is_of_one_process
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, is_none, loader_of, samplers_of
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project


def surely_shared(project: Project, module: SourceModule, loader: ast.expr) -> bool:
    """True for a loader of torch that has a DistributedSampler wherever it is made: a helper may be asked for a plain one.

    Where the name holds None there is no loader, and nobody goes through it.
    """
    found = [o for o in origins(project, module, loader) if not is_none(o)]
    loaders = [made for o in found if (made := loader_of(o)) is not None]
    if not loaders or len(loaders) != len(found):
        return False
    return all(_is_shared(project, made) for made in loaders)


def _is_shared(project: Project, made: Loader) -> bool:
    samplers = samplers_of(project, made)
    given = [s for s in samplers if not (is_none(s) and (is_left_out(made, s) or _is_without_data(made, s)))]
    return bool(given) and all(is_distributed_sampler(project, s) or is_of_one_process(project, made, s) for s in given)


def _is_without_data(made: Loader, sampler: Origin) -> bool:
    """True for the None of `DistributedSampler(data) if data else None`, where the loader goes through `data`."""
    choice = made.module.parent(sampler.node)
    if sampler.module is not made.module or not isinstance(choice, ast.IfExp) or choice.orelse is not sampler.node:
        return False
    data = dotted(made.dataset) if made.dataset is not None else ""
    same = made.module.function_of(choice) is made.module.function_of(made.call)
    return bool(data) and same and _asks_for(choice.test, data)


def _asks_for(test: ast.expr, name: str) -> bool:
    """True for `data` and `data is not None`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        nothing = test.comparators[0]
        return dotted(test.left) == name and isinstance(nothing, ast.Constant) and nothing.value is None
    return dotted(test) == name
