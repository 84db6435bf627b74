"""Functions that a program calls as its only process: `run(0, 1, options)`, where `mp.spawn(run, …)` was taken out."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.uses import uses_of
from codemods.data.rank_names import GLOBAL_NAMES, LOCAL_NAMES, WEAK_NAMES
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_RANKS = GLOBAL_NAMES | LOCAL_NAMES | WEAK_NAMES
# What gives a process that a launcher started its number, or joins it to the others, whatever the call says.
_JOINS = lazy(rb"RANK['\"]|WORLD_SIZE|get_rank|Accelerator\(|ightning|deepspeed|horovod|hvd|launch")
_STARTS = ("init_process_group", "spawn", "start_processes", "Process", "DistributedDataParallel", "DDP")


def is_handed_zero(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where each call of the function says that this is rank 0, and neither of the files starts or joins processes."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args) if a.arg in _RANKS]
    if not names or _joins(module):
        return False
    key = ("handed zero", module.path, function.lineno)
    return project.keep(key, lambda: _all_zero(project, module, function, names[0]))


def _all_zero(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not used.calls or any(_joins(site.module) for site in used.calls):
        return False
    given = [value for _, value in arguments(project, module, function, name)]
    return len(given) == len(used.calls) and all(isinstance(v, ast.Constant) and v.value == 0 for v in given)


def _joins(module: SourceModule) -> bool:
    return _JOINS.search(module.data) is not None or any(True for _ in module.calls_named(*_STARTS))
