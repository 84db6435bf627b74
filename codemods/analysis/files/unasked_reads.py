"""Reads of a file that fail where it is missing: nothing asks before whether it is there, and nobody catches the error."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act, file_call
from codemods.files.source import SourceModule, walk

_ASKS = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir", "glob", "listdir", "iterdir"})


def read_unasked(module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The path that a call reads, whatever is there; None for any other call."""
    found = file_call(module, call)
    if found is None or found.act not in (Act.READS, Act.LOADS):
        return None
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(up, (ast.Try, ast.TryStar)) and up.handlers:
            return None
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and _asks(up.test):
            return None
    return found.path


def _asks(test: ast.expr) -> bool:
    names = {getattr(n, "attr", getattr(n, "id", "")) for n in walk(test)}
    return bool(names & _ASKS)
