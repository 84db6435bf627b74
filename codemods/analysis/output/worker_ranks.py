"""The rank that a worker of `torch.multiprocessing.spawn` works out of its node's number and its own index."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule

_RANKS = frozenset({"rank", "global_rank", "world_rank"})


def rank_of_worker(module: SourceModule, function: FunctionNode | None, statement: ast.stmt) -> str:
    """`args.rank` behind `args.rank = args.rank * gpus + gpu`, of settings that the function is handed; "" where there is none.

    Spawn sets no `RANK`: this is the only global rank that its processes have. Without a group it keeps its default, -1 or 0.
    """
    if function is None or not module.holds(b"rank *"):
        return ""
    handed = {a.arg for a in (*function.args.posonlyargs, *function.args.args)}
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if module.function_of(assign) is not function or assign.lineno >= statement.lineno or len(assign.targets) != 1:
            continue
        if isinstance(target, ast.Attribute) and target.attr in _RANKS and isinstance(target.value, ast.Name):
            if target.value.id in handed and _is_worked_out(assign.value, dotted(target)):
                return dotted(target)
    return ""


def _is_worked_out(value: ast.expr, rank: str) -> bool:
    """True for `rank * gpus + gpu`: the number of the node becomes that of the process."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    return any(
        isinstance(s, ast.BinOp) and isinstance(s.op, ast.Mult) and rank in (dotted(s.left), dotted(s.right))
        for s in (value.left, value.right)
    )
