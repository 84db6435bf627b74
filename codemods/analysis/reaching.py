"""Which of the bindings of a name may hold at a place: a later one of the same block takes an earlier one away."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.bindings import Binding
from codemods.source import SourceModule

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def reaching(module: SourceModule, name: ast.Name, bound: list[Binding]) -> list[Binding]:
    """The bindings of `bound` that may hold at `name`: all of them where they stand in another function than the name."""
    function = module.function_of(name)
    if len(bound) < 2 or any(not b.parameter and module.function_of(b.node) is not function for b in bound):
        return bound
    above = [up for up in module.ancestors(name) if isinstance(up, ast.stmt)]
    loops = [up for up in above if isinstance(up, _LOOPS)]
    line = min(name.lineno, module.statement_of(name).lineno)
    blocks = {id(s) for up in above for s in module.block_of(up)}
    sure = [b for b in bound if isinstance(b.node, (ast.Assign, ast.AnnAssign)) and id(b.node) in blocks and b.node.lineno < line]
    first = max((_line(b) for b in sure), default=0)
    return [b for b in bound if _holds(module, b, first, line, loops)]


def _holds(module: SourceModule, binding: Binding, first: int, line: int, loops: Sequence[ast.stmt]) -> bool:
    if binding.parameter:
        return not first
    at = _line(binding)
    if first <= at < line:
        return True
    again = [up for up in loops if any(up is above for above in (binding.node, *module.ancestors(binding.node)))]
    return at >= line and any(up.lineno > first for up in again)


def _line(binding: Binding) -> int:
    return getattr(binding.node, "lineno", 0)
