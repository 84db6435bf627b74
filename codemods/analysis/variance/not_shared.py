"""Loaders that one call wants whole: `make_loader(args, distributed=False)` of a function that shares the data out for others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.model.literal_arguments import UNTOLD, literal_of, told
from codemods.analysis.model.signatures import is_bound
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause, How, Kind, Proof, Value, differing
from codemods.analysis.wrapped.wraps import wraps_by_apex
from codemods.data.rank_variance import SHARING_SAMPLERS
from codemods.store.project import Project

_DEEP = 4
_KINDS = (Kind.LOADER, Kind.SAMPLER)
_ENDS = (ast.Return, ast.Raise)
_Given = Mapping[str, ast.expr]


def is_asked_for_whole(project: Project, value: Value, call: ast.Call, site: FunctionSite) -> bool:
    """True for a loader or sampler that differs by a sampler that the function does not make for the literals of this call."""
    if value.cause is not Cause.DATA or value.kind not in _KINDS:
        return False
    given = _told(site, call, {})
    return bool(given) and _shares_out(project, site, {}, _DEEP) and not _shares_out(project, site, given, _DEEP)


def whole(state: State, call: ast.Call, value: Value) -> Value:
    """The loader of that call: the same on all ranks, but for models whose wrapper sends no buffers, as apex's."""
    if not wraps_by_apex(state.module):
        return Value(thing=value.thing)
    text = f"`{state.short(call)}` gives each rank all of it, and apex leaves each rank its own buffers"
    return differing(Cause.DATA, Proof.LIKELY, state.link(call, text, how=How.WHOLE), thing=value.thing)


def _told(site: FunctionSite, call: ast.Call, outer: _Given) -> dict[str, ast.expr]:
    return told(site.node, call, outer, bound=is_bound(site.module, site.node))


def _shares_out(project: Project, site: FunctionSite, given: _Given, deep: int) -> bool:
    """Does the function, or one that it calls, make a sampler that gives each rank its own part?"""
    for call in _calls(site.node.body, given):
        if SHARING_SAMPLERS.search(last(dotted(call.func))):
            return True
        called = called_function(project, site.module, call) if deep else None
        if called is not None and _shares_out(project, called, _told(called, call, given), deep - 1):
            return True
    return False


def _calls(body: list[ast.stmt], given: _Given) -> Iterator[ast.Call]:
    """The calls of the statements that run for these literals."""
    for statement in _running(body, given):
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Call):
                yield node
            answer = literal_of(node.test, given) if isinstance(node, ast.IfExp) else UNTOLD
            if isinstance(node, ast.IfExp) and answer is not UNTOLD:
                todo.append(node.body if answer else node.orelse)
                continue
            todo += (n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt))


def _running(body: list[ast.stmt], given: _Given) -> Iterator[ast.stmt]:
    """The statements of a body and of the blocks in it, without the arms that the literals rule out."""
    for statement in body:
        yield statement
        answer = literal_of(statement.test, given) if isinstance(statement, ast.If) else UNTOLD
        if isinstance(statement, ast.If) and answer is not UNTOLD:
            arm = statement.body if answer else statement.orelse
            yield from _running(arm, given)
            if arm and isinstance(arm[-1], _ENDS):
                return
            continue
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _running(getattr(statement, name, []), given)
        for handler in getattr(statement, "handlers", []):
            yield from _running(handler.body, given)
        for case in getattr(statement, "cases", []):
            yield from _running(case.body, given)
        if isinstance(statement, _ENDS):
            return
