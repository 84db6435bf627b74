"""What a program makes before it spawns its workers: one process makes it, and all workers are handed the same."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.processes.starts import starts_in
from codemods.analysis.ranks.uses import CallSite, calls_of
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_made_by_the_parent(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where each program of several processes that comes to a function calls it in front of its `mp.spawn`."""
    function = module.function_of(node)
    calls = calls_of(project, module, function) if function is not None else None
    if not calls:
        return False
    by_parents = [_spawns_behind(project, call) for call in calls]
    return any(by_parents) and all(
        by_parent or ranks_in_file(project, call.module) is None for call, by_parent in zip(calls, by_parents, strict=True)
    )


def _spawns_behind(project: Project, site: CallSite) -> bool:
    if not site.module.holds(b"multiprocessing"):
        return False
    home = site.module.function_of(site.call)
    starts = list(starts_in(project, site.module))
    if any(start.worker.node is home for start in starts):
        return False
    return any(s.call.lineno > site.call.lineno and site.module.function_of(s.call) is home for s in starts)
