"""Helpers that give a DistributedSampler in a run of several processes, and another sampler in one of a single one."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.loading.origins import Origin
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler
from codemods.analysis.model.signatures import bind
from codemods.analysis.ranks.several_processes import several_processes
from codemods.project import Project
from codemods.source import walk


def is_of_one_process(project: Project, loader: Loader, sampler: Origin) -> bool:
    """True for a sampler that the helper gives only where it is told that there is one process.

    `data_sampler(dataset, distributed=args.distributed)`, with `if distributed: return DistributedSampler(dataset)` on top.
    """
    asked = loader.sampler
    site = called_function(project, loader.module, asked) if isinstance(asked, ast.Call) else None
    if site is None or not isinstance(asked, ast.Call) or site.module is not sampler.module:
        return False
    if not any(n is sampler.node for n in walk(site.node)) or (test := _test_of_several(project, site)) is None:
        return False
    if any(n is sampler.node for s in test.body for n in walk(s)):
        return False
    given = (bind(site.node, asked, bound=False) or {}).get(test.test.id) if isinstance(test.test, ast.Name) else None
    return given is not None and several_processes(loader.module, given) is True


def _test_of_several(project: Project, site: FunctionSite) -> ast.If | None:
    """The first statement of the helper, where it asks a parameter and gives a DistributedSampler."""
    body = [s for s in site.node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    first = body[0] if body else None
    if not isinstance(first, ast.If) or not isinstance(first.test, ast.Name) or len(first.body) != 1:
        return None
    end = first.body[0]
    if not isinstance(end, ast.Return) or end.value is None:
        return None
    return first if is_distributed_sampler(project, Origin(site.module, end.value)) else None
