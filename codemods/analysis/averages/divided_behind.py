"""Is what a collective sums divided by the number of processes in the lines behind it, in the same block?"""

from __future__ import annotations

import ast

from codemods.analysis.averages.calls import is_process_count_in
from codemods.analysis.averages.scale import At
from codemods.analysis.names import dotted
from codemods.analysis.positions import behind
from codemods.files.source import walk


def is_divided_behind(joined: At) -> bool:
    """`tensor /= world_size`, `tensor.div_(world_size)` or `tensor = tensor / world_size`: it is the mean again."""
    call = joined.node if isinstance(joined.node, ast.Call) else getattr(joined.node, "value", None)
    name = dotted(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    return bool(name) and any(
        _divides(joined, node, name)
        for statement in behind(joined.module, joined.module.statement_of(joined.node))
        for node in walk(statement)
    )


def _divides(joined: At, node: ast.AST, name: str) -> bool:
    if isinstance(node, (ast.AugAssign, ast.BinOp)) and isinstance(node.op, ast.Div):
        divided, by = (node.target, node.value) if isinstance(node, ast.AugAssign) else (node.left, node.right)
        return dotted(divided) == name and is_process_count_in(joined.module, by)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("div_", "div") and node.args:
        return dotted(node.func.value) == name and is_process_count_in(joined.module, node.args[0])
    return False
