"""Names that rank 0 gives a value first, and the other ranks by the same words behind it: `if rank == 0: path = fetch(url)`,
a barrier, `if rank != 0: path = fetch(url)`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.rank_sets import Ranks, negated
from codemods.analysis.variance.state import State


def is_given_in_turn(state: State, target: ast.expr) -> bool:
    """True where each side of a test of the rank gives the name what the other one gives it."""
    if not isinstance(target, ast.Name):
        return False
    bound = [b for b in bindings_of(state.module, target) if state.module.function_of(b.node) is state.function]
    if len(bound) < 2 or any(b.part for b in bound):
        return False
    written = {ast.dump(b.value) if b.value is not None else "" for b in bound}
    if len(written) != 1 or "" in written:
        return False
    sides = {ranks_at(state.module, b.node, project=state.project) for b in bound}
    return len(sides) == 2 and not sides & {Ranks.ALL, Ranks.UNKNOWN} and negated(sides.pop()) in sides
