"""Which of the bindings of a name may hold at a place, and which one surely does: a later one takes an earlier one away."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import takewhile

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.positions import behind
from codemods.files.source import FunctionNode, SourceModule, walk

Place = tuple[int, int]  # line and column
_NOWHERE = (0, 0)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def reaching(module: SourceModule, name: ast.Name, bound: list[Binding]) -> list[Binding]:
    """The bindings of `bound` that may hold at `name`: all of them where they stand in another function than the name."""
    function = module.function_of(name)
    if len(bound) < 2 or any(not b.parameter and module.function_of(b.node) is not function for b in bound):
        return bound
    above = list(takewhile(lambda up: up is not function, (up for up in module.ancestors(name) if isinstance(up, ast.stmt))))
    loops = [up for up in above if isinstance(up, _LOOPS)]
    statement = module.statement_of(name)
    line = min((name.lineno, name.col_offset), (statement.lineno, statement.col_offset))
    blocks = {id(s) for up in above for s in module.block_of(up)}
    above_it = (b for b in bound if isinstance(b.node, (ast.Assign, ast.AnnAssign)) and _place(b.node) < line)
    sure = [b for b in above_it if id(b.node) in blocks and not _is_made_of(b, name.id)]
    first = max((_place(b.node) for b in sure), default=_NOWHERE)
    return [b for b in bound if _holds(module, b, first, line, loops) and not _is_overwritten(module, b, bound, name)]


def sure_binding(module: SourceModule, function: FunctionNode | None, name: ast.Name) -> Binding | None:
    """The binding whose value the name has here, be it made of an earlier one; None where a branch or a loop may give another."""
    here = module.statement_of(name)
    above = [b for b in bindings_in(module, function, name.id) if _place(b.node) < _place(here)]
    if not above:
        return None
    found = max(above, key=lambda b: _place(b.node))
    return found if not found.parameter and _is_passed(module, found.node, here) else None


def sure_value(module: SourceModule, function: FunctionNode | None, name: ast.Name) -> ast.expr | None:
    """The expression that the name holds as a whole; None where it is a part of one, or a way may give it another."""
    found = sure_binding(module, function, name)
    return found.value if found is not None and not found.part else None


def _is_passed(module: SourceModule, node: ast.AST, here: ast.stmt) -> bool:
    """True where `here` stands in the block of the binding, below it; a `with` round the binding is part of the block."""
    bound = module.statement_of(node)
    if isinstance(bound, (*_LOOPS, ast.If, ast.Try)):
        return False  # the variable of a loop
    way = [here, *(up for up in module.ancestors(here))]
    while isinstance(block := module.parent(bound), (ast.With, ast.AsyncWith)) and block not in way:
        bound = block
    at = next((n for n in way if module.parent(n) is block), None)
    if block is None or at is None:
        return False
    bodies = [getattr(block, field, None) for field in ("body", "orelse", "finalbody")]
    return any(isinstance(b, list) and bound in b and at in b for b in bodies)


def _is_overwritten(module: SourceModule, binding: Binding, bound: Sequence[Binding], name: ast.Name) -> bool:
    """True where a later statement of the same block gives the name another value, and the name is not read in between.

    What may leave the block before it comes there (`break`, an error that is caught) is left alone.
    """
    if not isinstance(binding.node, (ast.Assign, ast.AnnAssign)):
        return False
    if any(isinstance(up, (ast.Try, ast.TryStar)) for up in module.ancestors(binding.node)):
        return False
    nodes = {id(b.node) for b in bound if isinstance(b.node, ast.Assign) and not _is_made_of(b, name.id)}
    between: list[ast.stmt] = []
    for statement in behind(module, binding.node):
        if any(n is name for n in walk(statement)):
            return False
        if id(statement) in nodes:
            return not any(isinstance(n, (ast.Break, ast.Continue)) for s in between for n in walk(s))
        between.append(statement)
    return False


def _is_made_of(binding: Binding, name: str) -> bool:
    """True for `head = convert(head)`: what it was made of may be asked for as well."""
    return binding.value is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(binding.value))


def _holds(module: SourceModule, binding: Binding, first: Place, line: Place, loops: Sequence[ast.stmt]) -> bool:
    if binding.parameter:
        return first == _NOWHERE
    at = _place(binding.node)
    if first <= at < line:
        return True
    again = [up for up in loops if any(up is above for above in (binding.node, *module.ancestors(binding.node)))]
    return at >= line and any(_place(up) > first for up in again)


def _place(node: ast.AST) -> Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
