"""Which value a name has at a place of its function: that of the last line above which every way passes."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in
from codemods.files.source import FunctionNode, SourceModule


def given(module: SourceModule, function: FunctionNode | None, name: ast.Name) -> ast.expr | None:
    """The expression that the name holds as a whole; None where it is a part of one, or a way may give it another."""
    found = reaching(module, function, name)
    return found.value if found is not None and not found.part else None


def reaching(module: SourceModule, function: FunctionNode | None, name: ast.Name) -> Binding | None:
    """The binding whose value the name has here; None where a branch or a loop may give it another."""
    here = module.statement_of(name)
    above = [b for b in bindings_in(module, function, name.id) if _place(b.node) < _place(here)]
    if not above:
        return None
    found = max(above, key=lambda b: _place(b.node))
    return found if not found.parameter and _is_passed(module, found.node, here) else None


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _is_passed(module: SourceModule, node: ast.AST, here: ast.stmt) -> bool:
    """True where `here` stands in the block of the binding, below it; a `with` round the binding is part of the block."""
    bound = module.statement_of(node)
    if isinstance(bound, (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try)):
        return False  # the variable of a loop
    way = [here, *(up for up in module.ancestors(here))]
    while isinstance(block := module.parent(bound), (ast.With, ast.AsyncWith)) and block not in way:
        bound = block
    at = next((n for n in way if module.parent(n) is block), None)
    if block is None or at is None:
        return False
    bodies = [getattr(block, field, None) for field in ("body", "orelse", "finalbody")]
    return any(isinstance(b, list) and bound in b and at in b for b in bodies)
