"""Copies of an object with other values in some of its fields: what the others hold does not change by that."""

from __future__ import annotations

import ast

from codemods.analysis.names import qualified
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Value
from codemods.files.source import SourceModule
from codemods.runtime.record import record, replace

_FUNCTIONS = frozenset({"dataclasses.replace", "copy.replace", "attr.evolve", "attrs.evolve"})


@record
class Copied:
    """original: what is copied. fields: what is given anew, by its name."""

    original: ast.expr
    fields: dict[str, ast.expr]


def copied(module: SourceModule, node: ast.AST) -> Copied | None:
    """`replace(old, seed=1)`, `old._replace(seed=1)`, `old.model_copy(update={"seed": 1})`; None for other calls."""
    if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
        return None
    given = {k.arg: k.value for k in node.keywords if k.arg}
    if qualified(module, node.func) in _FUNCTIONS and len(node.args) == 1:
        return Copied(node.args[0], given)
    if not isinstance(node.func, ast.Attribute) or node.args:
        return None
    if node.func.attr == "_replace" and given:
        return Copied(node.func.value, given)
    update = given.get("update")
    if node.func.attr == "model_copy" and isinstance(update, ast.Dict):
        keys = [k.value for k in update.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        return Copied(node.func.value, dict(zip(keys, update.values, strict=True))) if len(keys) == len(update.keys) else None
    return None


def value_of_copy(state: State, node: ast.Call) -> Value | None:
    """What a copy holds as a whole: what the original does. The fields that are given are kept under its name (`keep_fields`)."""
    found = copied(state.module, node)
    return replace(state.values.get(id(found.original), SAME), parts=(), entries=()) if found is not None else None


def keep_fields(state: State, target: ast.expr, value: ast.expr) -> None:
    """`new = replace(old, rank=rank)`: `new.rank` is that, and no other field is."""
    found = copied(state.module, value) if isinstance(target, ast.Name) else None
    if found is not None and isinstance(target, ast.Name):
        for name, given in found.fields.items():
            state.env[f"{target.id}.{name}"] = state.value(given)
