"""Where a function that rank 0 goes on with alone can take the module out of the wrapper: above the first forward, for all below.

A function that hands the wrapper on first keeps it until then: what it hands it to may take the module out itself, and would
find none.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.forwards_behind_guards import AloneForward
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.rank_zero_forward import is_quiet
from codemods.api.findings import InsertBefore
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_SAME_INSIDE = frozenset({"eval", "train", "training", "parameters"})
_TRAINS = frozenset({"backward", "step", "zero_grad"})


def unwrapped_there(project: Project, module: SourceModule, found: AloneForward) -> tuple[InsertBefore, ...]:
    """The line that takes the module out, none where something below needs the wrapper, or another rank comes there."""
    name = next((n for n in module.reads_of(found.text) if isinstance(n, ast.Name) and module.span(n) == found.span), None)
    function = module.function_of(name) if name is not None else None
    if name is None or function is None or not _is_only_handed_in(module, function, found.text):
        return ()
    place = _outermost_alone(project, module, name)
    if place is None or not module.is_whole(place) or _trains(function):
        return ()
    uses = [n for n in module.reads_of(found.text) if isinstance(n, ast.Name) and _is_inside(module, n, function)]
    if any(module.function_of(n) is not function or _is_kept_for_later(module, n) for n in uses):
        return ()
    below = [n for n in uses if n.lineno >= place.lineno]
    if not all(_is_the_same_inside(module, n) and ranks_at(module, n, project=project) in _ZERO for n in below):
        return ()
    code = f'{found.text} = getattr({found.text}, "module", {found.text})'
    return (InsertBefore(module.path, module.span(place), code),)


def _is_only_handed_in(module: SourceModule, function: FunctionNode, name: str) -> bool:
    bound = bindings_in(module, function, name)
    return len(bound) == 1 and bound[0].parameter


def _outermost_alone(project: Project, module: SourceModule, node: ast.AST) -> ast.stmt | None:
    """The outermost statement round the forward to which rank 0 comes alone; None in a loop to which all come."""
    place: ast.stmt | None = None
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return place
        if not isinstance(up, ast.stmt):
            continue
        if ranks_at(module, up, project=project) in _ZERO:
            place = up
        elif isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return None
    return None


def _trains(function: FunctionNode) -> bool:
    calls = (n for n in walk_scope(function) if isinstance(n, ast.Call))
    return any(last(dotted(c.func)) in _TRAINS or getattr(c.func, "attr", "") in _TRAINS for c in calls)


def _is_inside(module: SourceModule, node: ast.AST, function: FunctionNode) -> bool:
    return any(up is function for up in module.ancestors(node))


def _is_kept_for_later(module: SourceModule, node: ast.AST) -> bool:
    return any(isinstance(up, ast.Lambda) for up in module.ancestors(node))


def _is_the_same_inside(module: SourceModule, name: ast.Name) -> bool:
    """True for a forward without gradients, and for what the module inside answers as the wrapper does."""
    up = module.parent(name)
    if isinstance(up, ast.Call):
        return up.func is name and is_quiet(module, up)
    return isinstance(up, ast.Attribute) and up.attr in _SAME_INSIDE
