"""Weights that are read past the wrapper, beside a call of the wrapper: `loss += (model.module.head.weight ** 2).sum()`.

Their gradients are averaged all the same: autograd sums what all uses give a leaf before the hook of DDP sees it (on two
processes the gradients were equal).
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk

_WEIGHTS = frozenset({"weight", "bias"})


def is_weight_read(module: SourceModule, node: ast.AST, wrapper: str) -> bool:
    """True where what `node` begins comes to a weight, and its function calls the wrapper, too."""
    end = node
    while (up := module.parent(end)) is not None and isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is end:
        end = up
        if isinstance(end, ast.Attribute) and end.attr in _WEIGHTS and isinstance(end.ctx, ast.Load):
            break
    else:
        return False
    function = module.function_of(node)
    calls = (n for n in walk(function or module.tree) if isinstance(n, ast.Call))
    return any(dotted(c.func) == wrapper for c in calls)
