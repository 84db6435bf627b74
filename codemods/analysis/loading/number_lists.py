"""Does a list hold numbers alone, by all that its function puts into it? Their hash is the same in every process."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import is_in_a_loop
from codemods.files.source import SourceModule

_CASTS = frozenset({"int", "float", "len", "hash", "round"})
_ADDS = frozenset({"append", "extend", "insert"})


def is_number(value: ast.expr) -> bool:
    """True for what is a number by how it is written."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float))
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.USub) and is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    return isinstance(value, ast.Call) and last(dotted(value.func)) in _CASTS


def holds_numbers(module: SourceModule, name: ast.Name) -> bool:
    """True where the name is given lists of numbers and nothing else, as far as its use: `ids = []`, `ids.append(int(x))`."""
    again = is_in_a_loop(module, name)
    bound = [b for b in bindings_of(module, name) if again or getattr(b.node, "lineno", 0) < name.lineno]
    if not bound or any(b.value is None or b.part or not _is_list(b.value) for b in bound):
        return False
    function = module.function_of(name)
    added = [c for c in module.calls_named(*_ADDS) if _receiver(c) == name.id and module.function_of(c) is function]
    if not all(c.args and _is_list_or_number(c) for c in added):
        return False
    return bool(added) or any(b.value is not None and not _is_empty(b.value) for b in bound)


def _receiver(call: ast.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_list_or_number(call: ast.Call) -> bool:
    extends = isinstance(call.func, ast.Attribute) and call.func.attr == "extend"
    return _is_list(call.args[-1]) if extends else is_number(call.args[-1])


def _is_empty(value: ast.expr) -> bool:
    return (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Call) and not value.args)


def _is_list(value: ast.expr) -> bool:
    """A list of numbers, or one with nothing in it yet."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(is_number(e) for e in value.elts)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return is_number(value.elt)
    if isinstance(value, ast.Call) and dotted(value.func) in ("list", "sorted"):
        return not value.args or _is_list(value.args[0])
    if isinstance(value, ast.Call) and dotted(value.func) == "map" and value.args:
        return dotted(value.args[0]) in ("int", "float", "len")
    return isinstance(value, ast.Call) and dotted(value.func) == "range"
