"""Lines that were left over from looking for an error: `print(x.shape)`, `print("HERE")`. Whoever sees them takes them out."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.names import dotted, last
from codemods.files.source import walk
from codemods.runtime.lazy_pattern import lazy

_LOOKS = frozenset({"shape", "dtype", "ndim", "size", "dim", "requires_grad", "grad_fn"})
_WORD = lazy(r"[a-z]{3}")
_SHOUT = lazy(r"[A-Z]{3}")


def shows_nothing(statements: Sequence[ast.stmt]) -> bool:
    """True for `print()` and `print("\\n")` alone: an empty line more, and a guard takes no text away."""
    calls = [n for s in statements for n in walk(s) if isinstance(n, ast.Call)]
    return bool(calls) and all(isinstance(c.func, ast.Name) and c.func.id == "print" and _is_blank(c) for c in calls)


def _is_blank(line: ast.Call) -> bool:
    given = [*line.args, *(k.value for k in line.keywords if k.arg not in ("flush", "file"))]
    return all(isinstance(v, ast.Constant) and isinstance(v.value, str) and not v.value.strip() for v in given)


def of_debugging(statements: Sequence[ast.stmt]) -> bool:
    """True where each line shows only how tensors look, or calls one word in capitals."""
    calls = [n for s in statements for n in walk(s) if isinstance(n, ast.Call)]
    lines = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
    others = any(isinstance(c.func, ast.Attribute) and c.func.attr in ("info", "warning", "write") for c in calls)
    return bool(lines) and not others and all(_is_left_over(line) for line in lines)


def _is_left_over(line: ast.Call) -> bool:
    shown = [v for argument in line.args for v in _values(argument)]
    if shown:
        return all(_is_look(value) for value in shown)
    text = "".join(n.value for n in walk(line) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return len(text.split()) == 1 and _SHOUT.search(text) is not None and _WORD.search(text) is None


def _values(argument: ast.expr) -> list[ast.expr]:
    """What a line shows besides its text."""
    if isinstance(argument, ast.JoinedStr):
        return [part.value for part in argument.values if isinstance(part, ast.FormattedValue)]
    return [] if isinstance(argument, ast.Constant) else [argument]


def _is_look(value: ast.expr) -> bool:
    if isinstance(value, ast.Subscript):
        return _is_look(value.value)
    if isinstance(value, ast.Call):
        if dotted(value.func) in ("tuple", "list", "str") and value.args:
            return _is_look(value.args[0])
        return dotted(value.func) == "type" or (isinstance(value.func, ast.Attribute) and value.func.attr in _LOOKS)
    return last(dotted(value)) in _LOOKS and isinstance(value, ast.Attribute)
