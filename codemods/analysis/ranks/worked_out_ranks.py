"""Functions that work the global rank out of the local one, and then take the local one beside the number of all processes.

`rank = node * gpus + gpu` is the rank among all nodes, and the call that takes `rank` and `size` together shows what `size`
counts: a sampler with the same `size` and `gpu` deals by the wrong number, whoever gave either of them.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

_RANK = lazy(r"(?:^|[_.])rank$")


def worked_out_rank(module: SourceModule, index: ast.expr, size: ast.expr) -> str:
    """What the function of `index` calls the global rank, where it works that out of `index` and hands it over with `size`."""
    local, count = dotted(index), dotted(size)
    function = module.function_of(index)
    if not local or not count or function is None:
        return ""
    for assign in module.nodes(ast.Assign):
        if len(assign.targets) != 1 or assign.lineno >= index.lineno or module.function_of(assign) is not function:
            continue
        name = dotted(assign.targets[0])
        if name != local and _RANK.search(name) and _adds_to_a_product(assign.value, local):
            if any(_takes_both(c, name, count) for c in module.nodes(ast.Call) if module.function_of(c) is function):
                return name
    return ""


def _adds_to_a_product(value: ast.expr, local: str) -> bool:
    """True for `node * gpus + local`, in either order."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    sides = [(value.left, value.right), (value.right, value.left)]
    return any(isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult) and dotted(b) == local for a, b in sides)


def _takes_both(call: ast.Call, rank: str, size: str) -> bool:
    given = {dotted(a) for a in (*call.args, *(k.value for k in call.keywords))}
    return rank in given and size in given
