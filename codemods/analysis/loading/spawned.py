"""Which functions `torch.multiprocessing.spawn` runs as processes of their own, and where the parent starts them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.conditions import is_main_block
from codemods.analysis.functions import functions_by_name
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.spawned import STARTS, given_to_spawn
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_START = lazy(r"multiprocessing\.(?:spawn|start_processes)$")


@record
class Spawn:
    """call: the statement of the parent that starts the processes. worker: the function that each of them runs."""

    call: ast.Call
    worker: FunctionSite


def spawns_in(project: Project, module: SourceModule, function: FunctionNode | None) -> Iterator[Spawn]:
    """What a function, or the block under `__main__`, starts: by itself, or by a helper that it hands the worker to."""
    for call in calls_in(module, function):
        if _is_spawn(module, call):
            if (worker := _function(project, module, given_to_spawn(call))) is not None:
                yield Spawn(call, worker)
            continue
        handed = [w for a in call.args if (w := _function(project, module, a)) is not None]
        site = called_function(project, module, call) if handed else None
        if site is not None and any(_is_spawn(site.module, c) for c in _calls(site.node)):
            yield Spawn(call, handed[0])


def spawns_elsewhere(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True for what starts the processes by a helper in another file, be it handed the worker or not."""
    spawning = project.keep("files that spawn", lambda: frozenset(m.path for m, _ in _all_starts(project)))
    if not spawning - {module.path}:
        return False
    for call in calls_in(module, function):
        root = dotted(call.func).partition(".")[0]
        site = called_function(project, module, call) if root in module.imports else None
        if site is not None and site.module.path in spawning and any(_is_start(site.module, c) for c in _calls(site.node)):
            return True
    return False


def _all_starts(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    """Every call of the project that starts processes by torch.multiprocessing."""
    for path in sorted({p for name in STARTS for p in project.files_containing(f"{name}(".encode())}):
        module = project.module(path) if path.endswith(PYTHON_KINDS) else None
        if module is not None:
            yield from ((module, call) for call in module.calls_named(*STARTS) if _is_start(module, call))


def _is_start(module: SourceModule, call: ast.Call) -> bool:
    return bool(_START.search(qualified(module, call.func)))


def in_file_of_workers(project: Project, module: SourceModule) -> bool:
    """True for a file that calls `torch.multiprocessing.spawn`, or holds a function that another file has it run."""
    return module.path in project.keep("files of workers", lambda: frozenset(_files_of_workers(project)))


def _files_of_workers(project: Project) -> Iterator[str]:
    for module, call in _all_starts(project):
        yield module.path
        if (worker := _function(project, module, given_to_spawn(call))) is not None:
            yield worker.module.path


def calls_in(module: SourceModule, function: FunctionNode | None) -> list[ast.Call]:
    """The calls of a function; without one, of the block under `if __name__ == "__main__"`, which fresh processes leave out."""
    if function is not None:
        return _calls(function)
    return [n for block in module.tree.body if is_main_block(block) for n in walk(block) if isinstance(n, ast.Call)]


def _calls(function: FunctionNode) -> list[ast.Call]:
    return [n for n in walk_scope(function) if isinstance(n, ast.Call)]


def _is_spawn(module: SourceModule, call: ast.Call) -> bool:
    if not qualified(module, call.func).endswith("multiprocessing.spawn"):
        return False
    method = next((k.value for k in call.keywords if k.arg == "start_method"), None)
    return method is None or (isinstance(method, ast.Constant) and method.value == "spawn")


def _function(project: Project, module: SourceModule, node: ast.expr | None) -> FunctionSite | None:
    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    if not name or (isinstance(node, ast.Name) and not functions_by_name(module).get(name) and not module.imports.get(name)):
        return None
    return find_function(project, module, name)
