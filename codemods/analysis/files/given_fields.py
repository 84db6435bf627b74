"""What a field of an object was given last above a place, on the way there or in one arm of an `if` on it."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.runtime.record import record


@record
class Given:
    """statement: gives the value. outer: it, or the `if` in an arm of which it stands; on the way to the place."""

    statement: ast.Assign
    outer: ast.stmt
    value: ast.expr


def is_field(node: ast.expr) -> bool:
    """True for `args.out` and `self.args.out`."""
    return isinstance(node, ast.Attribute) and bool(dotted(node))


def last_given(module: SourceModule, place: ast.AST, name: str) -> Given | None:
    """The last value of `name` above the place; of values in arms of one `if`, that of the last arm."""
    function = module.function_of(place)
    line = module.statement_of(place).lineno
    made = [a for a in module.nodes(ast.Assign) if a.lineno < line and module.function_of(a) is function]
    made = [a for a in made if any(dotted(t) == name for t in a.targets)]
    nearest = max(made, key=lambda a: a.lineno, default=None)
    if nearest is None:
        return None
    parent = module.parent(nearest)
    for outer in (nearest, parent):
        if isinstance(outer, (ast.Assign, ast.If)) and _is_on_the_way(module, outer, place):
            return Given(nearest, outer, nearest.value)
    return None


def _is_on_the_way(module: SourceModule, statement: ast.stmt, place: ast.AST) -> bool:
    block = module.block_of(statement)
    return any(s is up for up in (place, *module.ancestors(place)) for s in block if s is not statement)
