"""Models on the CPU that are handed to spawned workers: each moves its own to its GPU, and the parent's stays as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.processes.starts import Start, run_after
from codemods.files.source import SourceModule, stands_above, walk, walk_scope
from codemods.runtime.record import record

_WRAPS = frozenset({"DistributedDataParallel", "DDP"})
_KEPT = frozenset({"state_dict", "save_pretrained", "parameters"})
_HARMLESS = frozenset({"train", "eval", "parameters", "named_parameters", "state_dict", "save_pretrained", "modules", "to"})


@record
class LeftModel:
    """moved: where the worker takes its model to its GPU. read: where the parent takes up its own. on: why it lies on the CPU."""

    name: str
    moved: ast.Call
    read: ast.expr
    on: str


def left_models(module: SourceModule, start: Start) -> Iterator[LeftModel]:
    for parameter, value in start.given.items():
        if not isinstance(value, ast.Name) or (moved := _moved_and_trained(start, parameter)) is None:
            continue
        bound = bindings_of(module, value)
        made = all(isinstance(b.value, ast.Call) and not b.part and stands_above(b.node, start.call) for b in bound)
        if not bound or not made:
            continue
        on = _stays_on_cpu(module, start, value)
        read = _read_behind(module, start, value) if on is not None else None
        if on is not None and read is not None:
            yield LeftModel(value.id, moved, read, on)


def _moved_and_trained(start: Start, parameter: str) -> ast.Call | None:
    """`model.to(rank)` or `model.cuda(rank)` in the worker, which wraps the model then."""
    worker = start.worker.node
    calls = [n for n in walk_scope(worker) if isinstance(n, ast.Call)]
    wrapped = any(last(dotted(c.func)) in _WRAPS and any(_holds(a, parameter) for a in c.args) for c in calls)
    moved = (
        c for c in calls
        if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name) and c.func.value.id == parameter
        and (c.func.attr == "cuda" or (c.func.attr == "to" and c.args and isinstance(c.args[0], ast.Name)
                                       and c.args[0].id == start.number))
    )  # fmt: skip
    return next(moved, None) if wrapped else None


def _holds(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(node))


def _stays_on_cpu(module: SourceModule, start: Start, name: ast.Name) -> str | None:
    """Why the parent's model lies on the CPU; None where it may be moved, shared, loaded or handed to who may do so."""
    why = "nothing moves it"
    given = frozenset(id(b.value) for b in bindings_of(module, name))
    for read in module.nodes(ast.Name):
        if read.id != name.id or read is name or module.function_of(read) is not module.function_of(name):
            continue
        above = module.parent(read)
        if isinstance(read.ctx, ast.Store):
            continue
        if isinstance(above, ast.Attribute) and isinstance(call := module.parent(above), ast.Call) and call.func is above:
            told = _told_cpu(module, call) if above.attr == "to" else ""
            if above.attr not in _HARMLESS or told is None:
                return None
            why = told or why
        elif isinstance(above, ast.Attribute) or _is_handed_to_workers(start, read):
            continue
        elif not isinstance(above, ast.Call) or not (above.func is read or id(above) in given or _prints(above)):
            return None
    return why


def _is_handed_to_workers(start: Start, read: ast.Name) -> bool:
    return any(v is read for v in start.given.values())


def _prints(call: ast.Call) -> bool:
    return dotted(call.func) == "print"


def _told_cpu(module: SourceModule, call: ast.Call) -> str | None:
    """Why `model.to(device)` leaves the model on the CPU."""
    value = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
    if isinstance(value, ast.Call) and last(dotted(value.func)) == "device" and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.Constant):
        return "" if value.value == "cpu" else None
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return _default_is_cpu(module, value.attr)
    return None


def _default_is_cpu(module: SourceModule, option: str) -> str | None:
    for call in module.calls_named("add_argument"):
        names = [str(a.value).lstrip("-").replace("-", "_") for a in call.args if isinstance(a, ast.Constant)]
        default = next((k.value for k in call.keywords if k.arg == "default"), None)
        if option in names and isinstance(default, ast.Constant) and default.value == "cpu":
            return f"it lies on the CPU by the default of --{option}"
    return None


def _read_behind(module: SourceModule, start: Start, name: ast.Name) -> ast.expr | None:
    """`model.state_dict()` or `model(x)` of the parent behind the start."""
    for statement in run_after(module, start.end):
        for node in walk(statement):
            if isinstance(node, ast.Call) and isinstance(func := node.func, (ast.Name, ast.Attribute)):
                base = func.value if isinstance(func, ast.Attribute) else func
                kept = isinstance(func, ast.Name) or func.attr in _KEPT
                if kept and isinstance(base, ast.Name) and base.id == name.id:
                    return node
    return None
