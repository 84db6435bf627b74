"""What the modes of transformers and Accelerate say of a run: `ParallelMode.DISTRIBUTED`, `DistributedType.NO`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last

# Is it a run with several processes?
_SEVERAL = {("ParallelMode", "DISTRIBUTED"): True, ("ParallelMode", "NOT_DISTRIBUTED"): False, ("DistributedType", "NO"): False}


def several_by_mode(test: ast.Compare) -> bool | None:
    """What the comparison with a mode answers where there are several processes; None for any other comparison."""
    if len(test.ops) != 1:
        return None
    holder, _, mode = dotted(test.comparators[0]).rpartition(".")
    several = _SEVERAL.get((last(holder), mode))
    if several is None or not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    return several is isinstance(test.ops[0], (ast.Eq, ast.Is))
