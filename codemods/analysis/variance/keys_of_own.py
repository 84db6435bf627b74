"""Keys that a dict has on some ranks alone: `if kept > 0: scores["hit"] = hits / kept`, where the rank's own data decide."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import Cause, Proof, Value, along
from codemods.files.source import walk_scope


def own_key(state: State, target: ast.Subscript) -> Value | None:
    """By what it differs whether the dict has this key; None where each rank gives it one, or that is not shown.

    The key is written out, and no other statement of the function gives the dict a value under it.
    """
    key, name = target.slice, target.value
    function = state.function
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not isinstance(name, ast.Name) or function is None:
        return None
    deciding = _deciding(state, target, name)
    if deciding is None or _has_it_anyway(state, target, name, key.value):
        return None
    test, value = deciding
    return along(value, state.link(target, f"`{name.id}[{key.value!r}]` is set where `{state.short(test)}`"))


def _deciding(state: State, target: ast.Subscript, name: ast.Name) -> tuple[ast.expr, Value] | None:
    """The innermost test of the own data round the place, below where the dict is made."""
    for up in state.module.ancestors(target):
        if up is state.function:
            return None
        if isinstance(up, (ast.If, ast.For, ast.While, ast.With)) and _is_made_in(state, up, name):
            return None
        if isinstance(up, ast.If):
            value = state.tests.get(id(up.test))
            if value is not None and value.cause is Cause.DATA and value.proof is Proof.PROVEN and not value.by_name:
                return up.test, value
    return None


def _is_made_in(state: State, block: ast.AST, name: ast.Name) -> bool:
    return any(_is_within(b.node, block) for b in bindings_in(state.module, state.function, name.id))


def _is_within(node: ast.AST, block: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    return getattr(block, "lineno", 0) <= line <= getattr(block, "end_lineno", 0)


def _has_it_anyway(state: State, target: ast.Subscript, name: ast.Name, key: str) -> bool:
    """True where the dict is not seen to be made without the key, and where another statement gives it the key."""
    if not _is_made_without(state, target, name, key):
        return True
    assert state.function is not None
    others = (n for n in walk_scope(state.function) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return any(
        n is not target and dotted(n.value) == name.id and (not isinstance(n.slice, ast.Constant) or n.slice.value == key)
        for n in others
    )


def _is_made_without(state: State, target: ast.Subscript, name: ast.Name, key: str) -> bool:
    """True where the last assignment above is a dict of written-out keys that lacks this one, and no test stands over it."""
    above = [b for b in bindings_in(state.module, state.function, name.id) if getattr(b.node, "lineno", 0) < target.lineno]
    last = max(above, key=lambda b: getattr(b.node, "lineno", 0), default=None)
    if last is None or last.value is None or last.part or not isinstance(last.node, ast.stmt):
        return False
    over = state.module.parent(last.node)
    if over is not state.function and not any(up is over for up in state.module.ancestors(target)):
        return False
    if isinstance(last.value, ast.Dict):
        return all(isinstance(k, ast.Constant) and k.value != key for k in last.value.keys)
    made = last.value if isinstance(last.value, ast.Call) and dotted(last.value.func) == "dict" else None
    return made is not None and not made.args and all(k.arg not in (None, key) for k in made.keywords)
