"""Tests for whether the process has a rank at all, whichever it is: all ranks of a run answer alike."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last

_GIVEN = ("RANK", "LOCAL_RANK", "WORLD_SIZE")  # torchrun, torch.distributed.launch and Accelerate give every process all of them


def asks_for_a_rank(test: ast.expr) -> bool | None:
    """What `rank is not None` and `"LOCAL_RANK" in os.environ` answer on each of several ranks; None for any other test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = asks_for_a_rank(test.operand)
        return None if inner is None else not inner
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, (ast.In, ast.NotIn)):
        given = isinstance(left, ast.Constant) and left.value in _GIVEN and dotted(right) in ("os.environ", "environ")
        return isinstance(op, ast.In) if given else None
    if ast.unparse(right) != "None" or not isinstance(op, (ast.Is, ast.IsNot)):
        return None
    if last(dotted(left)) not in ("rank", "local_rank", "global_rank") and not _is_read(left):
        return None
    return isinstance(op, ast.IsNot)


def _is_read(value: ast.expr) -> bool:
    """`os.environ.get("LOCAL_RANK")`, `os.getenv("RANK")`."""
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return False
    named = value.args[0]
    read = dotted(value.func) in ("os.environ.get", "os.getenv", "environ.get", "getenv")
    return read and isinstance(named, ast.Constant) and named.value in _GIVEN
