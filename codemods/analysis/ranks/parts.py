"""The place of a name in a tuple that is taken apart, and what stands in that place of another one."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted


def place_of(target: ast.AST | None, name: str) -> int | None:
    """Where `name` stands in `a, b, c = …`, from 0; None where it does not, and behind a starred one."""
    for place, element in enumerate(target.elts if isinstance(target, (ast.Tuple, ast.List)) else ()):
        if isinstance(element, ast.Starred):
            return None
        if dotted(element) == name:
            return place
    return None


def part_of(value: ast.expr | None, place: int) -> ast.expr | None:
    """What a tuple that is written out holds there."""
    if not isinstance(value, ast.Tuple) or any(isinstance(e, ast.Starred) for e in value.elts):
        return None
    return value.elts[place] if place < len(value.elts) else None
