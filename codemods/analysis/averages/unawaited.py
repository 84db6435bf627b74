"""Collectives that are started with `async_op=True`, and whose handle nobody keeps: nobody can wait for their result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import OUT_OF_PLACE, TORCH, collective_call
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

# Waiting on a stream or for all work waits for the collective too, and so does whatever tells of a stream of its own.
_WAITS = frozenset({"wait", "synchronize", "wait_stream", "wait_event", "wait_all", "stream", "query", "record_stream"})
_HANDLE_ONLY = frozenset({"barrier", "monitored_barrier", "new_group", "init_process_group"})


def collectives_nobody_awaits(project: Project, module: SourceModule) -> Iterator[ast.Call]:
    """The calls of the file that start a collective, throw its handle away, and are waited for in no other way."""
    for call in module.calls_named(*sorted(TORCH - _HANDLE_ONLY)):
        if not any(k.arg == "async_op" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords):
            continue
        name = qualified(module, call.func)
        if not name.startswith("torch.distributed.") or name.startswith(OUT_OF_PLACE) or not _is_dropped(module, call):
            continue
        function = module.function_of(call)
        if function is None or _is_waited_for(module, function, call):
            continue
        if _is_read_below(function, call) or not _callers_wait(project, module, function):
            yield call


def _is_dropped(module: SourceModule, call: ast.Call) -> bool:
    """True for a statement of its own, and for a name that the function never reads."""
    up = module.parent(call)
    if isinstance(up, ast.Expr):
        return not any(_coalesces(w) for w in module.ancestors(up))
    targets = up.targets if isinstance(up, ast.Assign) else [up.target] if isinstance(up, ast.AnnAssign) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    function, name = module.function_of(call), targets[0].id
    return function is not None and not any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Store) for n in walk(function)
    )


def _coalesces(node: ast.AST) -> bool:
    """True for a `with` that gathers the calls in it, and waits for all of them at its end."""
    return isinstance(node, (ast.With, ast.AsyncWith)) and any("coalesc" in ast.unparse(i.context_expr) for i in node.items)


def _is_waited_for(module: SourceModule, function: FunctionNode, but: ast.Call) -> bool:
    """True where the function waits in another way: for a stream, or in a collective behind which the device has done all."""
    for node in walk(function):
        if not isinstance(node, ast.Call) or node is but or _is_over_before(module, node, but):
            continue
        if last(dotted(node.func)) in _WAITS:
            return True
        if collective_call(module, node) and not any(k.arg in ("async_op", None) for k in node.keywords):
            return True
    return False


def _is_over_before(module: SourceModule, node: ast.Call, start: ast.Call) -> bool:
    """True for a call above the start that no loop comes back to: what it waits for is another collective."""
    if module.function_of(node) is not module.function_of(start) or node.lineno >= start.lineno:
        return False
    loops = [up for up in module.ancestors(start) if isinstance(up, (ast.For, ast.While, ast.AsyncFor))]
    return not any(up in loops for up in module.ancestors(node))


def _is_read_below(function: FunctionNode, call: ast.Call) -> bool:
    """True where the function itself goes on with what the call fills: whoever waits behind it comes too late."""
    given = {n.id for a in call.args[:2] for n in walk(a) if isinstance(n, ast.Name)} - {"self"}
    end = call.end_lineno or call.lineno
    return any(
        isinstance(n, ast.Name) and n.id in given and isinstance(n.ctx, ast.Load) and n.lineno > end for n in walk(function)
    )


def _callers_wait(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where a function that calls this one waits; where there are too many callers to look at, one may."""
    found = uses_of(project, module, function)
    if found.more:
        return True
    callers = [(c.module, f, c.call) for c in found.calls if (f := c.module.function_of(c.call)) is not None]
    return any(_is_waited_for(there, caller, call) for there, caller, call in callers)
