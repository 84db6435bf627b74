"""Arms for an engine that averages losses over the ranks itself: Megatron-LM, as Accelerate starts it."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last

_AVERAGING = "MEGATRON_LM"


def averaged_arm(test: ast.expr) -> bool | None:
    """True where the body of an `if` is for that engine, False where the other arm is; None for a test of something else."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    sides = (test.left, test.comparators[0])
    if not any(last(dotted(s)) == "distributed_type" for s in sides):
        return None
    if not any(last(dotted(s)) == _AVERAGING or (isinstance(s, ast.Constant) and s.value == _AVERAGING) for s in sides):
        return None
    if isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return True
    return False if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) else None
