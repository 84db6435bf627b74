"""Numbers of all ranks that each rank puts under a key of its own: what the others have added belongs elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause, Link
from codemods.files.source import SourceModule, stands_above, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class OwnKey:
    """statement: puts what `call` has reduced under `key`, which each process has chosen on its own, along `way`."""

    statement: ast.Assign | ast.AugAssign
    key: str
    call: ast.Call
    way: tuple[Link, ...]


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


def _key(node: ast.Assign | ast.AugAssign) -> ast.expr | None:
    """The key under which a statement puts something, where it is not written out."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, (ast.Slice, ast.Constant, ast.Tuple)):
        return None
    return target.slice
