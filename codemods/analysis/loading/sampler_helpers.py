"""Helpers that give a DistributedSampler in a run of several processes, and another sampler in one of a single one."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.loading.origins import Origin
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, is_none
from codemods.analysis.model.signatures import bind
from codemods.analysis.ranks.several_processes import several_processes
from codemods.files.source import walk
from codemods.store.project import Project


def is_of_one_process(project: Project, loader: Loader, sampler: Origin) -> bool:
    """True for a sampler that the helper gives only where it is told that there is one process.

    `data_sampler(dataset, distributed=args.distributed)`, with `if distributed: return DistributedSampler(dataset)` on top.
    """
    asked = loader.sampler
    site = called_function(project, loader.module, asked) if isinstance(asked, ast.Call) else None
    if site is None or not isinstance(asked, ast.Call) or site.module is not sampler.module:
        return False
    if not any(n is sampler.node for n in walk(site.node)) or (found := _arm_of_several(project, site)) is None:
        return False
    name, arm = found
    if any(n is sampler.node for s in arm for n in walk(s)):
        return False
    given = (bind(site.node, asked, bound=False) or {}).get(name)
    return given is not None and several_processes(loader.module, given) is True


def is_left_out(loader: Loader, sampler: Origin) -> bool:
    """True for the None of `DistributedSampler(data) if test else None` where no rank goes through a loader without it.

    The test asks for several processes, or the loader itself is made under the same test.
    """
    choice = sampler.module.parent(sampler.node)
    if not is_none(sampler) or not isinstance(choice, ast.IfExp) or sampler.node is not choice.orelse:
        return False
    if several_processes(sampler.module, choice.test) is True:
        return True
    round_it = loader.module.parent(loader.call)
    same = isinstance(round_it, ast.IfExp) and loader.call is round_it.body and ast.dump(round_it.test) == ast.dump(choice.test)
    return same and loader.module is sampler.module


def _arm_of_several(project: Project, site: FunctionSite) -> tuple[str, list[ast.stmt]] | None:
    """(a parameter, what the helper does where it is true), where it asks for it first and gives a DistributedSampler then."""
    module = site.module
    ends = [n for n in walk(site.node) if isinstance(n, ast.Return) and n.value is not None]
    first = min(ends, key=lambda r: r.lineno, default=None)
    for end in ends:
        if end.value is None or not is_distributed_sampler(project, Origin(module, end.value)):
            continue
        test = next((up for up in module.ancestors(end) if isinstance(up, (ast.If, ast.For, ast.While, ast.Match))), None)
        if not isinstance(test, ast.If) or first is None or first.lineno < test.lineno:
            return None
        beside = {id(n) for s in module.block_of(test) for n in walk(s)}
        if any(id(other) not in beside for other in ends):
            return None  # something round the test gives another sampler
        asked, turned = test.test, False
        while isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
            asked, turned = asked.operand, not turned
        arm = test.orelse if turned else test.body
        inside = any(n is end for s in arm for n in walk(s))
        return (asked.id, arm) if inside and isinstance(asked, ast.Name) else None
    return None
