"""Has a dict a key at a place (`params["main"]`)? The dict may be there, and the key be stored further down."""

from __future__ import annotations

import ast

from codemods.analysis.output.run_before import run_before
from codemods.files.source import SourceModule, walk


def has_its_keys(module: SourceModule, test: ast.expr, statement: ast.stmt) -> bool:
    """False for `params["main"]` where the function stores the key on some ways only: the dict may not have it yet."""
    held = [n for n in walk(test) if isinstance(n, ast.Subscript)]
    return all(not _stores_of(module, n, statement) or is_stored_before(module, n, statement) for n in held)


def is_stored_before(module: SourceModule, held: ast.Subscript, statement: ast.stmt) -> bool:
    """True for a key that a statement above the place has stored, and none below it."""
    stores = _stores_of(module, held, statement)
    if any(a.lineno >= statement.lineno for a in stores):
        return False
    return any(s is a for s in run_before(module, statement) for a in stores)


def _stores_of(module: SourceModule, held: ast.Subscript, statement: ast.stmt) -> list[ast.Assign]:
    """Where the function of the statement, or the file for its top level, stores the key."""
    text, function = ast.unparse(held), module.function_of(statement)
    own = (a for a in module.nodes(ast.Assign) if module.function_of(a) is function)
    return [a for a in own if any(isinstance(t, ast.Subscript) and ast.unparse(t) == text for t in a.targets)]
