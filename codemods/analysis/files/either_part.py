"""An expression with another part in the place of one of its own."""

from __future__ import annotations

import ast
from copy import copy
from typing import TypeVar

from codemods.files.source import walk

_Node = TypeVar("_Node", bound=ast.AST)


def with_part(tree: _Node, old: ast.expr, new: ast.expr) -> _Node:
    """What holds the part is copied; all else stays the module's own, so that its names are still found."""
    if all(node is not old for node in walk(tree)):
        return tree
    made = copy(tree)
    for name, value in ast.iter_fields(tree):
        parts = value if isinstance(value, list) else [value]
        put = [new if p is old else with_part(p, old, new) if isinstance(p, ast.AST) else p for p in parts]
        setattr(made, name, put if isinstance(value, list) else put[0])
    return made
