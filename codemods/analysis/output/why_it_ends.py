"""Lines right above what ends the rank: they say why, and a rank that ends alone would say nothing."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.positions import behind
from codemods.files.source import SourceModule, walk

_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit"})


def says_why_it_ends(module: SourceModule, statement: ast.stmt) -> bool:
    """True right above an exit, a `raise`, and an `assert` that can fail; other lines may stand in between.

    An `assert` with a text of its own says why by itself: a line above it does where it shows what is tested.
    """
    ends = next((s for s in behind(module, statement) if not _is_said(s)), None)
    if isinstance(ends, ast.Expr) and isinstance(ends.value, ast.Call):
        return dotted(ends.value.func) in _EXITS
    if isinstance(ends, ast.Assert):
        return not _always_holds(ends.test) and (ends.msg is None or bool(_names(ends.test) & _names(statement)))
    return isinstance(ends, ast.Raise)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)} - {"print", "len", "str", "int"}


def _always_holds(test: ast.expr) -> bool:
    """True for `assert True`, and for `assert (x, "text")`, where Python tests a tuple that is not empty."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    return isinstance(test, ast.Tuple) and bool(test.elts)


def _is_said(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and dotted(statement.value.func) == "print"
