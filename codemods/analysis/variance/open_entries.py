"""Entries of dicts that fields hold: a method that reads `self.config["task"]` asks for that entry alone, not for the rest.

What a field holds is asked later, when all methods of the class are read, so the key is kept with its name until then.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import entry_of, own_field
from codemods.analysis.variance.values import REST, Cause, Proof, Value, plain
from codemods.runtime.record import replace


def asked_entry(node: ast.Subscript, holder: Value) -> Value | None:
    """`self.config["task"]` of a field of which nothing else is known yet; None for everything else."""
    entry = entry_of(node)
    return _open(entry, dotted(node.value), holder) if entry else None


def got_entry(call: ast.Call, holder: Value, known: Mapping[str, Value]) -> Value | None:
    """The same for `self.config.get("task")`; of a dict whose entries are known that entry. known: what names hold here."""
    func, key = call.func, _text(call.args[0]) if call.args else None
    if not isinstance(func, ast.Attribute) or func.attr != "get" or key is None or holder.thing is not None:
        return None
    path = dotted(func.value)
    entry = f"{path}[{key!r}]"
    if path and (found := known.get(entry) or _open(entry, path, holder)) is not None:
        return found
    return plain(held) if (held := _held(holder, key)) is not None else None


def of_entry(value: Value, name: str) -> Value:
    """What a field holds, as far as `name` (`self.config['task']`) asks for it."""
    _, bracket, rest = name.partition("[")
    if not bracket:
        return value
    held = _held(value, ast.literal_eval(rest.removesuffix("]")))
    return plain(value) if held is None else held


def _open(entry: str, path: str, holder: Value) -> Value | None:
    if not own_field(path) or holder.cause is not Cause.UNKNOWN or holder.thing is not None or holder.params != {path}:
        return None
    return replace(holder, proof=Proof.UNKNOWN, params=frozenset({entry}))


def _held(value: Value, key: str) -> Value | None:
    entries = dict(value.entries)
    return entries.get(key, entries.get(REST))


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
