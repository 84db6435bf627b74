"""Numbers of all ranks that each rank puts under a key of its own: what the others have added belongs elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import Meeting, State
from codemods.analysis.variance.values import Cause, Link, Proof
from codemods.files.source import SourceModule, stands_above, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_KEEPS = frozenset({"update", "append", "add"})


@record
class OwnKey:
    """statement: puts what `call` has reduced under `key`, which each process has chosen on its own, along `way`.

    drawn: from random numbers; else the key is that of the rank's own batch.
    """

    statement: ast.stmt
    key: str
    call: ast.Call
    way: tuple[Link, ...]
    drawn: bool = True


def own_keys(project: Project, module: SourceModule) -> Iterator[OwnKey]:
    """One for each function of the file."""
    analysis = variance(project)
    if not analysis.is_parallel(module):
        return
    for function in module.functions:
        stores = [n for n in walk_scope(function) if isinstance(n, (ast.Assign, ast.AugAssign)) and _key(n) is not None]
        reduced = _reduced(module, function) if stores else []
        state = analysis.of(FunctionSite(module, function)) if reduced else None
        if state is not None:
            yield from _in_function(analysis, state, stores, reduced)
        yield from _of_own_batch(analysis, module, function)


def _reduced(module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    return [c for c in module.calls_named("all_reduce") if c.args and module.function_of(c) is function]


def _in_function(
    analysis: Analysis, state: State, stores: list[ast.Assign | ast.AugAssign], reduced: list[ast.Call]
) -> Iterator[OwnKey]:
    for store in stores:
        key = _key(store)
        if key is None:
            continue
        value = analysis.value(state.module, key)
        if not value.differs or value.cause is not Cause.PLACE or value.by_name:
            continue
        read = {n.id for n in walk(store.value) if isinstance(n, ast.Name)}
        met = (c for c in reduced if any(m.carries for m in state.met.get(id(c), ())))
        call = next((c for c in met if path_of(c.args[0]) in read and stands_above(c, store)), None)
        if call is not None:
            yield OwnKey(store, state.short(key), call, value.chain)
            return


def _of_own_batch(
    analysis: Analysis, module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[OwnKey]:
    """`metrics[category].update(scores)` in a loop over the own share, where each round reduces `scores` over the ranks."""
    kept = [k for n in walk_scope(function) if isinstance(n, ast.Expr) and (k := _kept_under(n)) is not None]
    state = analysis.of(FunctionSite(module, function)) if kept else None
    for statement, key, given in kept if state is not None else ():
        value = analysis.value(module, key)
        if not value.is_of_own_data or value.proof is not Proof.PROVEN or analysis.value(module, given).differs:
            continue
        calls = [c for b in bindings_in(module, function, given.id) if b.value is not None for c in (b.value, *walk(b.value))]
        met = (c for c in calls if state is not None and any(_adds_up(m) for m in state.met.get(id(c), ())))
        call = next((c for c in met if isinstance(c, ast.Call) and _in_one_round(module, c, statement)), None)
        if call is not None and state is not None:
            yield OwnKey(statement, state.short(key), call, value.chain, drawn=False)
            return


def _kept_under(node: ast.Expr) -> tuple[ast.Expr, ast.expr, ast.Name] | None:
    """(statement, `key`, `given`) for `held[key].update(given)`, where the key is not written out."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _KEEPS:
        return None
    held, given = call.func.value, call.args[0] if call.args else None
    if not isinstance(held, ast.Subscript) or not isinstance(held.slice, ast.Name) or not isinstance(given, ast.Name):
        return None
    return node, held.slice, given


def _adds_up(meeting: Meeting) -> bool:
    return meeting.carries and meeting.name == "all_reduce"


def _in_one_round(module: SourceModule, call: ast.Call, statement: ast.stmt) -> bool:
    """True where one loop holds both, and the number is put together above."""
    loops = [up for up in module.ancestors(call) if isinstance(up, ast.For)]
    return call.lineno < statement.lineno and any(up in loops for up in module.ancestors(statement))


def _key(node: ast.Assign | ast.AugAssign) -> ast.expr | None:
    """The key under which a statement puts something, where it is not written out."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, (ast.Slice, ast.Constant, ast.Tuple)):
        return None
    return target.slice
