"""Where a program spawns its workers by torch.multiprocessing, what each is handed, and which functions a worker comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.spawned import given_to_spawn
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_MOST = 60  # functions that a worker comes to


@record
class Start:
    """call: what starts the workers. given: parameter of the worker -> what it is handed. number: of which process it is.

    end: what comes back when they have ended; None where nobody waits for them.
    """

    call: ast.Call
    worker: FunctionSite
    given: dict[str, ast.expr]
    number: str
    end: ast.Call | None


def starts_in(project: Project, module: SourceModule) -> Iterator[Start]:
    """`mp.spawn(worker, args=(…))`: it spawns whatever `start_method` says; `start_processes`, unless it is told another; and
    `Process` of torch.multiprocessing, where the file says `spawn`.
    """
    for call in module.calls_named("spawn", "start_processes"):
        name = qualified(module, call.func)
        if not name.endswith(("multiprocessing.spawn", "multiprocessing.start_processes")) or not _spawns(call, name):
            continue
        worker = _worker(project, module, given_to_spawn(call))
        value = _argument(call, "args", 1)
        given = _given(module, value, worker.node, first=1) if worker is not None else None
        if worker is not None and given is not None:
            joined = _argument(call, "join", 3)
            waits = joined is None or (isinstance(joined, ast.Constant) and joined.value is True)
            yield Start(call, worker, given, worker.node.args.args[0].arg, call if waits else None)
    for call in module.calls_named("Process"):
        worker = _worker(project, module, _argument(call, "target", 1)) if _is_spawned_process(module, call) else None
        given = _given(module, _argument(call, "args", 3), worker.node, first=0) if worker is not None else None
        if worker is not None and given is not None:
            yield Start(call, worker, given, "", _join_behind(module, call))


def _spawns(call: ast.Call, name: str) -> bool:
    words = {k.arg: k.value for k in call.keywords}
    method = _argument(call, "start_method", 5)
    told = method is None or (isinstance(method, ast.Constant) and method.value == "spawn")
    return None not in words and (name.endswith(".spawn") or told)


def _argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), call.args[place] if len(call.args) > place else None)


def _is_spawned_process(module: SourceModule, call: ast.Call) -> bool:
    """True for `mp.Process` behind `mp.set_start_method("spawn")`, and for that of `mp.get_context("spawn")`."""
    if qualified(module, call.func) == "torch.multiprocessing.Process":
        return _sets_spawn(module)
    if not isinstance(call.func, ast.Attribute):
        return False
    holder = call.func.value
    made = only_value(bindings_of(module, holder)) if isinstance(holder, ast.Name) else holder
    if not isinstance(made, ast.Call) or qualified(module, made.func) != "torch.multiprocessing.get_context":
        return False
    return _says_spawn(made)


def _sets_spawn(module: SourceModule) -> bool:
    calls = module.calls_named("set_start_method")
    return bool(calls) and all(_says_spawn(c) for c in calls)


def _says_spawn(call: ast.Call) -> bool:
    method = _argument(call, "method", 0)
    return isinstance(method, ast.Constant) and method.value == "spawn"


def _join_behind(module: SourceModule, call: ast.Call) -> ast.Call | None:
    """The last `process.join()` of the function that makes the processes."""
    function = module.function_of(call)
    joins = [c for c in module.calls_named("join") if module.function_of(c) is function and not c.args and not c.keywords]
    return max((c for c in joins if c.lineno > call.lineno), key=lambda c: c.lineno, default=None)


def _worker(project: Project, module: SourceModule, node: ast.expr | None) -> FunctionSite | None:
    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    site = find_function(project, module, name) if name else None
    if site is None or site.module.class_of(site.node) is not None or site.module.function_of(site.node) is not None:
        return None
    return site


def _given(module: SourceModule, value: ast.expr | None, worker: FunctionNode, *, first: int) -> dict[str, ast.expr] | None:
    """What the parameters from `first` on are handed; None where that is not written out."""
    if isinstance(value, ast.Name):
        value = only_value(bindings_of(module, value))
        if value is None:
            return None
    if worker.args.posonlyargs or len(worker.args.args) < first:
        return None
    if value is None:
        return {}
    if not isinstance(value, (ast.Tuple, ast.List)) or any(isinstance(e, ast.Starred) for e in value.elts):
        return None
    return {a.arg: e for a, e in zip(worker.args.args[first:], value.elts, strict=False)}


def reached_by(project: Project, worker: FunctionSite) -> list[FunctionSite]:
    """The worker and the project's functions that it calls, and those that they call."""
    found, left = {worker.key: worker}, [worker]
    while left and len(found) < _MOST:
        site = left.pop()
        for node in walk(site.node):
            if isinstance(node, ast.Call) and (next_one := called_function(project, site.module, node)) is not None:
                if next_one.key not in found:
                    found[next_one.key] = next_one
                    left.append(next_one)
    return list(found.values())


def run_after(module: SourceModule, node: ast.AST | None) -> Iterator[ast.stmt]:
    """The statements of the same function, or of the file, that are run when the one that holds the node has come back."""
    if node is None:
        return
    at: ast.AST = module.statement_of(node)
    while isinstance(at, ast.stmt) and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        block = module.block_of(at)
        for statement in block[block.index(at) + 1 :]:
            yield statement
            if leaves([statement]):
                return
        above = module.parent(at)
        while above is not None and not isinstance(above, (ast.stmt, ast.Module)):
            above = module.parent(above)
        if above is None or isinstance(above, ast.Module):
            return
        at = above
