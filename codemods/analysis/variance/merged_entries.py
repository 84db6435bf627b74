"""Which of the dicts that were put into one has the entry that is read? `{**trained, **tested}` has numbers of both."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule

_STEPS = 5


def may_be_of_another(module: SourceModule, node: ast.expr, is_own: Callable[[ast.expr], bool]) -> bool:
    """True where an entry is read of dicts that were merged, and not all of them hold what is asked for.

    is_own: whether a dict, or a value beside it, is the rank's own.
    """
    read = _entry_read(module, node, _STEPS)
    if read is None:
        return False
    holder, key = read
    merged = _only(module, holder) if isinstance(holder, ast.Name) else None
    if not isinstance(merged, ast.Dict) or all(k is not None for k in merged.keys):
        return False
    written = [v for k, v in zip(merged.keys, merged.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
    parts = written[-1:] if key is not None and written else [
        v for k, v in zip(merged.keys, merged.values, strict=True) if k is None
    ]  # fmt: skip
    return not all(is_own(part) for part in parts)


def _entry_read(module: SourceModule, node: ast.expr, steps: int) -> tuple[ast.expr, str | None] | None:
    """(the dict, the key where it is written out) of what a number is read from, behind names and `float(...)`."""
    if steps == 0:
        return None
    if isinstance(node, ast.Name):
        value = _only(module, node)
        return _entry_read(module, value, steps - 1) if value is not None else None
    if isinstance(node, ast.Subscript):
        return node.value, _text(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        return node.func.value, _text(node.args[0])
    if isinstance(node, ast.Call) and dotted(node.func) in ("float", "int", "round") and node.args:
        return _entry_read(module, node.args[0], steps - 1)
    return None


def _only(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The one value of a name, besides None for none."""
    values = [b.value for b in bindings_of(module, name) if b.value is None or not is_none(b.value)]
    parted = any(b.part for b in bindings_of(module, name))
    return values[0] if len(values) == 1 and not parted else None


def _text(key: ast.expr) -> str | None:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
