"""Starts of another number of processes than the process group waits for: `nprocs=2` and `world_size=4`, one beside the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.handed_arguments import spawned_with
from codemods.analysis.ranks.values_behind import values_behind
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Unequal:
    """started, waited: the two numbers as they are told. when: in which runs they differ. group: where the group is started."""

    count: ast.expr
    started: str
    waited: str
    when: str
    worker: FunctionSite
    group: ast.Call


def unequal_counts(
    project: Project, module: SourceModule, target: ast.expr, count: ast.expr, worker: FunctionSite
) -> Unequal | None:
    """How a start differs from the group of its worker, where that numbers the ranks as the start numbers the processes."""
    for group, size in _groups(worker):
        given = _as_handed(module, target, worker, size)
        for arm in _arms(count):
            found = _differ(project, module, arm, worker, size, given)
            if found is not None and not _is_checked(module, count, arm, found[1]):
                return Unequal(count, *found, worker, group)
    return None


def _groups(worker: FunctionSite) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The starts of the group in a worker that takes the number of the process for the rank, each with the number of ranks."""
    module, function = worker.module, worker.node
    first = next((a.arg for a in (*function.args.posonlyargs, *function.args.args)), "")
    for call in module.calls_named("init_process_group"):
        named = {k.arg: k.value for k in call.keywords}
        rank, size = named.get("rank"), named.get("world_size")
        if module.function_of(call) is not function or size is None or rank is None or dotted(rank) != first:
            continue
        if qualified(module, call.func).startswith("torch.") and len(bindings_in(module, function, first)) == 1:
            yield call, size


def _as_handed(module: SourceModule, target: ast.expr, worker: FunctionSite, size: ast.expr) -> ast.expr | None:
    """What this start hands over for the number of ranks, where that is a parameter of the worker."""
    if not isinstance(size, ast.Name):
        return None
    bound = bindings_in(worker.module, worker.node, size.id)
    if len(bound) != 1 or not bound[0].parameter:
        return None
    names = [a.arg for a in (*worker.node.args.posonlyargs, *worker.node.args.args)]
    return spawned_with(module, target, names, size.id)


def _arms(count: ast.expr) -> Iterator[ast.expr]:
    if isinstance(count, ast.IfExp):
        yield from _arms(count.body)
        yield from _arms(count.orelse)
    else:
        yield count


def _differ(
    project: Project, module: SourceModule, arm: ast.expr, worker: FunctionSite, size: ast.expr, given: ast.expr | None
) -> tuple[str, str, str] | None:
    """(what is started, what is waited for, when the two differ)."""
    cut = _cut(arm)
    if cut is not None and given is not None and dotted(given) and dotted(given) == dotted(cut[0]):
        name, known = dotted(given), _number(project, module, given)
        if known is not None and known <= cut[1]:
            return None
        return f"no more than {_processes(cut[1])}", f"`{name}`", f"where `{name}` is more than {cut[1]}"
    waited = _number(project, *((module, given) if given is not None else (worker.module, size)))
    if waited is None:
        return None
    started = _number(project, module, arm)
    if started is not None:
        return (_processes(started), str(waited), "") if started != waited else None
    values = values_behind(project, module, arm, constants=True)
    if len(values) == 1 and isinstance(values[0].node, ast.Call):
        if qualified(values[0].module, values[0].node.func) == "torch.cuda.device_count":
            return "one process for each GPU", str(waited), f"on a machine with any other number of GPUs than {waited}"
    return None


def _processes(count: int) -> str:
    return "one process" if count == 1 else f"{count} processes"


def _cut(node: ast.expr) -> tuple[ast.expr, int] | None:
    """`n` and 4 of `min(n, 4)`."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "min" or len(node.args) != 2 or node.keywords:
        return None
    numbers = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
    others = [a for a in node.args if not isinstance(a, ast.Constant)]
    return (others[0], numbers[0]) if len(numbers) == 1 and len(others) == 1 else None


def _number(project: Project, module: SourceModule, node: ast.expr) -> int | None:
    """The one number that an expression always is."""
    values = values_behind(project, module, node, constants=True)
    if len(values) != 1 or not isinstance(values[0].node, ast.Constant):
        return None
    value = values[0].node.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_checked(module: SourceModule, count: ast.expr, arm: ast.expr, waited: str) -> bool:
    """True where the file compares the number of processes, or of GPUs, with what is waited for."""
    names = {dotted(n) for n in walk(arm) if dotted(n)} | {dotted(count)}
    for node in module.nodes(ast.Compare):
        said = {dotted(n) for n in walk(node) if dotted(n)} | {str(n.value) for n in walk(node) if isinstance(n, ast.Constant)}
        devices = any(word.endswith("device_count") for word in said)
        if waited.strip("`") in said and (said & names or devices) and not waited.startswith("`"):
            return True
    return False
