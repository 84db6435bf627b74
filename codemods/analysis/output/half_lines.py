"""Half a line: `print("saving ... ", end="")`, whose other half another print writes. A guard round one of them tears it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.files.source import FunctionNode, SourceModule, walk


def tears_a_line(module: SourceModule, function: FunctionNode | ast.Module, statements: Sequence[ast.stmt]) -> bool:
    """True where a line begins in these statements and goes on behind them, or begins above them and goes on here."""
    own = [n for s in statements for n in walk(s) if _is_print(n)]
    if not own:
        return False
    calls = [c for c in module.calls_named("print") if _is_print(c) and module.function_of(c) is _scope(function)]
    calls.sort(key=lambda c: (c.lineno, c.col_offset))
    inside = set(map(id, own))
    places = [i for i, call in enumerate(calls) if id(call) in inside]
    if not places:
        return False
    first, final = places[0], places[-1]
    opened_above = first > 0 and _is_open(calls[first - 1])
    return opened_above or (_is_open(calls[final]) and final + 1 < len(calls))


def _scope(function: FunctionNode | ast.Module) -> FunctionNode | None:
    return None if isinstance(function, ast.Module) else function


def _is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _is_open(call: ast.AST) -> bool:
    """True for a line that the next print goes on with; one that begins with a carriage return is written over instead."""
    if not isinstance(call, ast.Call):
        return False
    end = next((k.value for k in call.keywords if k.arg == "end"), None)
    if not isinstance(end, ast.Constant) or not isinstance(end.value, str) or {"\n", "\r"} & set(end.value):
        return False
    texts = [n.value for a in call.args for n in walk(a) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return not any("\r" in text or text.endswith("\n") for text in texts)
