"""A dict that is shown as a whole: what is written out in it, and what is put into it entry by entry above."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted
from codemods.analysis.variance.number_words import is_key, reads_like_one, texts_of
from codemods.analysis.variance.state import State
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_MOST = 24  # entries of one dict
# What is merged into it may hold the numbers of all ranks under the same keys.
_OF_ALL = lazy(r"reduc|gather|sync|avg|mean|global|world|total|merge|all_")


def written_out(state: State, node: ast.expr) -> list[ast.expr]:
    """The dict that a name holds and nothing else, the texts that it may hold, or the entries that are put into it."""
    if not isinstance(node, ast.Name):
        return []
    found = [b for b in bindings_of(state.module, node) if state.module.function_of(b.node) is state.function]
    values = [b.value for b in found if b.value is not None]
    entries = list(_entries(state, node)) if values and len(values) == len(found) and all(map(_is_dict, values)) else []
    if len(values) == 1 and isinstance(values[0], ast.Dict):
        later = {key for key, value in _stores(state, node) if values[0].lineno < value.lineno < node.lineno}
        pairs = zip(values[0].keys, values[0].values, strict=True)
        kept = [value for key, value in pairs if key is None or _text(key) is None or _text(key) not in later]
        return [*(values if len(kept) == len(values[0].values) else kept), *entries]
    return entries or texts_of(state.module, node)


def dict_of_row(node: ast.expr) -> ast.expr:
    """`row` for `row.values()`, `row.items()` and `list(row.values())`, as a table is written; anything else is itself."""
    inner = node
    if isinstance(inner, ast.Call) and dotted(inner.func) in ("list", "tuple") and len(inner.args) == 1 and not inner.keywords:
        inner = inner.args[0]
    func = inner.func if isinstance(inner, ast.Call) and not inner.args and not inner.keywords else None
    asked = isinstance(func, ast.Attribute) and func.attr in ("values", "items") and isinstance(func.value, ast.Name)
    return func.value if isinstance(func, ast.Attribute) and asked else node


def names_a_number(module: SourceModule, part: ast.expr) -> bool:
    """True for the value of an entry whose key names a loss or a metric: `{"val_loss": x}`, `row["val_loss"] = x`."""
    up = module.parent(part)
    if isinstance(up, ast.Dict):
        return reads_like_one(up, part)
    key = _stored_key(up) if isinstance(up, ast.Assign) else None
    return key is not None and is_key(key)


def is_entry(module: SourceModule, part: ast.expr) -> bool:
    up = module.parent(part)
    return isinstance(up, ast.Dict) or (isinstance(up, ast.Assign) and _stored_key(up) is not None)


def _is_dict(value: ast.expr) -> bool:
    """True for `{...}`, and for an empty `dict()`."""
    return isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and dotted(value.func) == "dict" and not value.args)


def _entries(state: State, name: ast.Name) -> Iterator[ast.expr]:
    """What stands last under each key where the name is shown; nothing where all entries may have been changed since.

    They are changed by a loop over the keys, and by a function that is handed the dict and comes to a collective.
    """
    last: dict[str, ast.expr] = {}
    for key, value in _stores(state, name):
        if key is None:
            return  # `row[key] = reduced(row[key])`, `row.update(reduced)`
        if value.lineno < name.lineno:
            last[key] = value
    if len(last) <= _MOST and not any(_may_reduce(state, name, c) for c in state.module.nodes(ast.Call)):
        yield from last.values()


def _stores(state: State, name: ast.Name) -> list[tuple[str | None, ast.expr]]:
    """(key, value) of `row["loss"] = x` and `row.update({"loss": x})` in the function, in their order."""
    module, found = state.module, list[tuple[str | None, ast.expr]]()
    for store in module.nodes(ast.Assign):
        target = store.targets[0]
        if isinstance(target, ast.Subscript) and dotted(target.value) == name.id and module.function_of(store) is state.function:
            found.append((_stored_key(store), store.value))
    for call in module.calls_named("update"):
        if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) != name.id or not call.args:
            continue
        given = call.args[0]
        if module.function_of(call) is not state.function:
            continue
        if isinstance(given, ast.Dict):
            found += [(_text(k), v) for k, v in zip(given.keys, given.values, strict=True)]
        elif _OF_ALL.search(module.text_of(given).lower()):
            found.append((None, given))
    return sorted(found, key=lambda pair: (pair[1].lineno, pair[1].col_offset))


def _may_reduce(state: State, name: ast.Name, call: ast.Call) -> bool:
    """True for a call above that is handed the dict, and of which something is said about collectives."""
    if call.lineno >= name.lineno or state.module.function_of(call) is not state.function:
        return False
    given = (*call.args, *(k.value for k in call.keywords))
    handed = any(isinstance(n, ast.Name) and n.id == name.id for g in given for n in walk(g))
    return handed and any(m.carries for m in state.met.get(id(call), ()))


def _stored_key(store: ast.Assign) -> str | None:
    target = store.targets[0] if len(store.targets) == 1 else None
    return _text(target.slice) if isinstance(target, ast.Subscript) else None


def _text(key: ast.expr | None) -> str | None:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
