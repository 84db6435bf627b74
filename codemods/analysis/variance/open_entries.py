"""Entries of dicts that fields hold: a method that reads `self.config["task"]` asks for that entry alone, not for the rest.

What a field holds is asked later, when all methods of the class are read, so the key is kept with its name until then.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import own_field, written_key
from codemods.analysis.variance.values import REST, SAME, Cause, Value, join, plain
from codemods.runtime.record import replace


def asked_entry(node: ast.Subscript, holder: Value) -> Value | None:
    """`self.config["task"]`: what stands under that key, or will be known to; None where neither is."""
    if not isinstance(node.slice, ast.Constant):
        return None
    key, path = node.slice.value, _path(node.value)
    held = _held(holder, key)
    if not isinstance(key, str):
        return held
    return open_under(key, path, holder if held is None else held) if held is not None or is_open_field(holder, path) else None


def got_entry(call: ast.Call, holder: Value, known: Mapping[str, Value]) -> Value | None:
    """The same for `self.config.get("task")`; of a dict whose entries are known that entry. known: what names hold here."""
    func, written = call.func, written_key(call.args[0]) if call.args else ""
    if not isinstance(func, ast.Attribute) or func.attr != "get" or not written:
        return None
    path = _path(func.value)
    if path and (entry := f"{path}[{written}]") in known:
        return known[entry]
    if holder.thing is not None or (key := _text(call.args[0])) is None:
        return None
    held = _held(holder, key)
    return open_under(key, path, holder if held is None else held) if held is not None or is_open_field(holder, path) else None


def of_entry(value: Value, name: str) -> Value:
    """What a field holds, as far as `name` (`self.config['task']`) asks for it."""
    for key in _keys(name) if "[" in name else ():
        held = _held(value, key)
        if held is None:
            return plain(value)
        value = held
    return value


def is_open_field(value: Value, path: str) -> bool:
    """True for a dict of which no more is known than the name of the field that holds it."""
    return bool(own_field(path)) and value.cause is Cause.UNKNOWN and value.thing is None and value.params == {path}


def open_under(key: str, path: str, value: Value) -> Value:
    """What stands under a key, where `value` is all of a field, or one of its entries."""
    return replace(value, params=frozenset({f"{path}[{key!r}]"})) if is_open_field(value, path) else plain(value)


def put_over(value: Value, before: Value | None, path: str) -> Value:
    """What a dict holds behind a method that gave some entries anew, where it is known what stood under the others."""
    given = dict(value.entries)
    rest = given.pop(REST, None)
    if before is None or rest is None or not is_open_field(rest, path):
        return value
    found = join((before, replace(plain(value), params=value.params - {path})))
    whole = not before.cause.differs and before.thing is None
    others = before.entries or (((REST, plain(before)),) if whole else ())
    kept = tuple((key, held) for key, held in others if key not in given)
    return replace(found, entries=(*kept, *given.items()) if others else ())


def without_the_rest(value: Value, name: str) -> Value:
    """What a method puts into a field: under the keys that it names; what stands under the others comes from other methods."""
    if not any(key == REST and is_open_field(held, f"self.{name}") for key, held in value.entries):
        return value
    return replace(value, entries=tuple((key, SAME if key == REST else held) for key, held in value.entries))


def _path(node: ast.expr) -> str:
    """`self.config['run']` for `self.config["run"]`; "" where a key is not written out."""
    if not isinstance(node, ast.Subscript):
        return dotted(node)
    key, path = _text(node.slice), _path(node.value)
    return f"{path}[{key!r}]" if path and key is not None else ""


@lru_cache(maxsize=4096)
def _keys(name: str) -> tuple[object, ...]:
    node, keys = ast.parse(name, mode="eval").body, list[object]()
    while isinstance(node, ast.Subscript):
        keys.insert(0, ast.literal_eval(node.slice))
        node = node.value
    return tuple(keys)


def _held(value: Value, key: object) -> Value | None:
    entries: dict[object, Value] = dict(value.entries)
    return entries.get(key, entries.get(REST))


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
