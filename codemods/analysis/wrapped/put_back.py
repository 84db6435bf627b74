"""Weights that a rank exchanges for a while: `kept = net.state_dict()`, and `net.load_state_dict(kept)` when it is done."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_CHANGE = frozenset({"update", "pop", "setdefault", "clear", "popitem"})


def is_put_back(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a `net.load_state_dict(...)` that puts back what `net` had, or behind which its function or each caller does."""
    function = module.function_of(call)
    if not isinstance(call.func, ast.Attribute) or function is None:
        return False
    receiver = dotted(call.func.value)
    if _puts_back(module, function, call) or _below(module, call, {receiver}):
        return True
    sites = calls_of(project, module, function) or ()
    return bool(sites) and all(_below(s.module, s.call, {dotted(a) for a in s.call.args} - {""}) for s in sites)


def _below(module: SourceModule, place: ast.Call, receivers: set[str]) -> bool:
    """True where the function of a place puts the weights of one of these models back further down."""
    function = module.function_of(place)
    if function is None:
        return False
    loads = (c for c in module.calls_named("load_state_dict") if module.function_of(c) is function and c.lineno > place.lineno)
    return any(
        isinstance(c.func, ast.Attribute) and dotted(c.func.value) in receivers and _puts_back(module, function, c) for c in loads
    )


def _puts_back(module: SourceModule, function: FunctionNode, call: ast.Call) -> bool:
    """True where the name that is loaded holds a copy of the same model's state, and nothing is put into that."""
    given = call.args[0] if call.args else None
    receiver = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if not isinstance(given, ast.Name) or not receiver:
        return False
    bound = bindings_in(module, function, given.id)
    values = [b.value for b in bound if b.value is not None and not b.part and not b.parameter]
    if not values or len(values) != len(bound) or _is_changed(function, given.id):
        return False
    return all(_is_state_of(value, receiver) for value in values)


def _is_state_of(value: ast.expr, receiver: str) -> bool:
    asked = (n.func for n in walk(value) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(f.attr == "state_dict" and dotted(f.value) == receiver for f in asked)


def _is_changed(function: FunctionNode, name: str) -> bool:
    for node in walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)) and dotted(node.value) == name:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGE:
            if dotted(node.func.value) == name:
                return True
    return False
