"""A literal that one rank gives a name which holds it on every rank already: `first = 0` above, `first = 0` on rank 0."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.bindings import Binding
from codemods.analysis.positions import is_in_a_loop
from codemods.files.source import SourceModule, line_of


def is_so_on_all(module: SourceModule, bound: Sequence[Binding], given: Binding) -> bool:
    """True where a statement above gives the same literal, and what gives another one between stands in another arm."""
    if not isinstance(given.value, ast.Constant) or is_in_a_loop(module, given.node):
        return False  # a later round may find another value there
    before = [b for b in bound if not b.parameter and line_of(b.node) < line_of(given.node)]
    while before and _is_in_another_arm(module, before[-1].node, given.node):
        before.pop()
    if not before or not isinstance(before[-1].value, ast.Constant):
        return False
    return before[-1].value.value == given.value.value and _is_passed(module, before[-1].node, given.node)


def _is_in_another_arm(module: SourceModule, node: ast.AST, other: ast.AST) -> bool:
    """True where one stands in the `if` and the other in its `else`: no run comes to both in one round."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If):
            arms = [{id(s) for s in arm} for arm in (up.body, up.orelse)]
            of_node, of_other = (_arm(module, n, arms) for n in (node, other))
            if None not in (of_node, of_other) and of_node != of_other:
                return True
    return False


def _arm(module: SourceModule, node: ast.AST, arms: list[set[int]]) -> int | None:
    around = {id(node), *(id(up) for up in module.ancestors(node))}
    return next((i for i, arm in enumerate(arms) if around & arm), None)


def _is_passed(module: SourceModule, above: ast.AST, node: ast.AST) -> bool:
    """True where every way to `node` comes past the statement above: its block is one of those round `node`."""
    block = module.parent(above)
    return block is not None and any(up is block for up in module.ancestors(node))
