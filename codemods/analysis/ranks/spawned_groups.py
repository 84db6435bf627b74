"""Processes that torch's `mp.spawn` starts and that meet in a group: a file that starts them need not speak of ranks itself."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, find_function, run_function
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.spawned import STARTS, given_to_spawn
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_DEPTH = 4
_JOIN = "init_process_group"


def spawned_ranks(project: Project, module: SourceModule) -> Evidence | None:
    """The call by which the file starts a function of its own on several processes, each of which joins one group."""
    return project.memo(("spawned ranks", module.path), lambda: _find(project, module))


def starts_on_ranks(project: Project, module: SourceModule, function: FunctionNode) -> Evidence | None:
    """The same call, where it starts this function."""
    found = spawned_ranks(project, module)
    started = {dotted(given_to_spawn(c)) for c in module.calls_named(*STARTS)} if found is not None else set()
    return found if started == {function.name} else None


def _find(project: Project, module: SourceModule) -> Evidence | None:
    if not any(module.holds(f"{name}(".encode()) for name in STARTS):
        return None
    for call in module.calls_named(*STARTS):
        name = dotted(given_to_spawn(call))
        if not name or "." in name or not qualified(module, call.func).startswith("torch.multiprocessing.") or _is_single(call):
            continue
        worker = find_function(project, module, name)
        if worker is not None and worker.module is module and _joins(project, worker, frozenset()):
            text = f"{module.text_of(call.func)} runs {name} on several processes, which join one process group"
            return Evidence("static", text, module.path, call.lineno)
    return None


def _is_single(call: ast.Call) -> bool:
    """True where no number is given, or 1: `spawn` starts one process then."""
    given = call.args[2] if len(call.args) > 2 else next((k.value for k in call.keywords if k.arg == "nprocs"), None)
    return given is None or (isinstance(given, ast.Constant) and given.value == 1)


def _joins(project: Project, site: FunctionSite, above: frozenset[tuple[str, int, int]]) -> bool:
    """True where a function starts the process group, itself or by what it calls."""
    if len(above) > _DEPTH or site.key in above or not may_show_ranks(project, site.module.path):
        return False
    calls = [n for n in walk_scope(site.node) if isinstance(n, ast.Call)]
    if any(qualified(site.module, c.func) == f"torch.distributed.{_JOIN}" for c in calls):
        return True
    inner = (run_function(project, site.module, c) for c in calls)
    return any(s is not None and _joins(project, s, above | {site.key}) for s in inner)
