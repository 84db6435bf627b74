"""Where a statement stands in its block, worked out once for a file: what lies above it is asked for each finding."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record


@record
class Position:
    """block: the statements, as its owner holds them under `name` ("body", "orelse", "finalbody"). index: the place in them."""

    block: list[ast.stmt]
    name: str
    index: int


def position(module: SourceModule, node: ast.AST) -> Position | None:
    """The place of a statement; None for any other node."""
    return _positions(module).get(id(node))


def above(module: SourceModule, node: ast.AST) -> list[ast.stmt]:
    """The statements above a statement in its block; none for any other node."""
    place = position(module, node)
    return place.block[: place.index] if place is not None else []


def behind(module: SourceModule, node: ast.AST) -> list[ast.stmt]:
    """The statements behind a statement in its block; none for any other node."""
    place = position(module, node)
    return place.block[place.index + 1 :] if place is not None else []


def loop_round(module: SourceModule, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop that goes round the node, of the same function, or of the file itself."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            return up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
    return None


def is_in_a_loop(module: SourceModule, node: ast.AST) -> bool:
    """True where a loop of the same function, or of the file itself, goes round the node."""
    return loop_round(module, node) is not None


@once_a_module
def _positions(module: SourceModule) -> Mapping[int, Position]:
    found: dict[int, Position] = {}
    for owner, block in ((module.tree, module.tree.body), *module.blocks()):
        name = next(n for n in ("body", "orelse", "finalbody") if getattr(owner, n, None) is block)
        found.update((id(s), Position(block, name, i)) for i, s in enumerate(block))
    return found
