"""What `DataLoader(data, **options)` is given by a dict that the same function writes out."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, only_value
from codemods.files.source import SourceModule

_DEPTH = 3
# Where one of these comes under a test, the loader may have a sampler or none.
_OF_THE_ORDER = frozenset({"sampler", "batch_sampler"})


def written_options(module: SourceModule, call: ast.Call) -> dict[str, ast.expr] | None:
    """The keywords behind each `**options` of a call; None where one of them may hold more than is written there."""
    found: dict[str, ast.expr] = {}
    for given in (k.value for k in call.keywords if k.arg is None):
        written = _written(module, given, 0)
        if written is None:
            return None
        found |= written
    return found


def _written(module: SourceModule, node: ast.expr, depth: int) -> dict[str, ast.expr] | None:
    if isinstance(node, ast.Name):
        return _named(module, node, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        pairs = [(k.arg, k.value) for k in node.keywords]
        return {key: value for key, value in pairs if key is not None} if all(key is not None for key, _ in pairs) else None
    if not isinstance(node, ast.Dict):
        return None
    keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
    if not all(isinstance(k, str) for k in keys):
        return None
    return {str(k): v for k, v in zip(keys, node.values, strict=True)}


def _named(module: SourceModule, name: ast.Name, depth: int) -> dict[str, ast.expr] | None:
    value = only_value(bindings_of(module, name))
    function = module.function_of(name)
    if depth > _DEPTH or value is None or module.function_of(value) is not function:
        return None
    found = _written(module, value, depth + 1)
    for read in module.reads_of(name.id) if found is not None else ():
        if module.function_of(read) is not function or not isinstance(read, ast.Name):
            continue
        added = _added(module, read, depth)
        if found is None or added is None or added.keys() & _OF_THE_ORDER:
            return None
        found = {**added, **found}
    return found


def _added(module: SourceModule, read: ast.Name, depth: int) -> dict[str, ast.expr] | None:
    """What a use of the dict may put into it: nothing for `**options` and `options["x"]`; None where that is not seen."""
    up = module.parent(read)
    if isinstance(up, ast.keyword) and up.arg is None:
        return {}
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "update":
        return {}  # it is put into another dict
    if isinstance(up, ast.Subscript) and up.value is read:
        if isinstance(up.ctx, ast.Load):
            return {}
        set_to = module.parent(up)
        key = up.slice.value if isinstance(up.slice, ast.Constant) else None
        return {key: set_to.value} if isinstance(key, str) and isinstance(set_to, ast.Assign) else None
    call = module.parent(up) if isinstance(up, ast.Attribute) else None
    if isinstance(up, ast.Attribute) and up.attr == "update" and isinstance(call, ast.Call) and call.func is up:
        others = written_options(module, call)
        parts = [_written(module, a, depth + 1) for a in call.args]
        if others is None or None in parts:
            return None
        for part in parts:
            others |= part or {}
        return others | {k.arg: k.value for k in call.keywords if k.arg}
    return None
