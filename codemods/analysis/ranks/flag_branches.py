"""A flag that the branches of a test set: `main = False`, then `if rank == 0: main = True`; or one in each branch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding
from codemods.files.source import SourceModule, line_of

_MOST = 6  # places that set one flag

Path = list[tuple[ast.expr, bool]]


def tests_of_flag(module: SourceModule, bound: list[Binding]) -> tuple[Path, bool] | None:
    """The tests on the way to the one place that sets a flag otherwise than the rest, each with what it comes out as there, and
    what is set there; None where the bindings are no such flag.
    """
    if not 2 <= len(bound) <= _MOST or not all(_is_flag(b) for b in bound):
        return None
    for wanted in (True, False):
        here = [b for b in bound if _value(b) is wanted]
        rest = [b for b in bound if _value(b) is not wanted]
        if len(here) == 1 and rest and (found := _way_to(module, here[0], rest)) is not None:
            return found, wanted
    return None


def _is_flag(binding: Binding) -> bool:
    return isinstance(binding.node, ast.Assign) and not binding.part and isinstance(_value(binding), bool)


def _value(binding: Binding) -> object:
    return binding.value.value if isinstance(binding.value, ast.Constant) else None


def _way_to(module: SourceModule, here: Binding, rest: list[Binding]) -> Path | None:
    """The tests round one binding, where the others are what the flag is on any other way: above them, or in another branch."""
    steps = list(_branches_round(module, here.node))
    if not steps:
        return None
    outermost = steps[-1][0]
    block = _block_of(module, outermost)
    for other in rest:
        above = any(s is other.node for s in block) and line_of(other.node) < outermost.lineno
        inside = [up for up, _ in _branches_round(module, other.node)]
        if not above and (not inside or inside[-1] is not outermost):
            return None
    return [(up.test, taken) for up, taken in steps]


def _branches_round(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """The `if` statements that hold a statement and nothing else, innermost first, and whether it stands in their body."""
    below = node
    for up in module.ancestors(node):
        if not isinstance(up, ast.If):
            return
        yield up, any(s is below for s in up.body)
        below = up


def _block_of(module: SourceModule, statement: ast.stmt) -> list[ast.stmt]:
    up = module.parent(statement)
    blocks = (getattr(up, name, None) for name in ("body", "orelse", "finalbody"))
    return next((b for b in blocks if isinstance(b, list) and any(s is statement for s in b)), [])
