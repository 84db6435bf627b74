"""Does a test tell a run with several processes from one without? Such a test has one answer where ranks matter."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.source import SourceModule

_WORDS = ("is_initialized", "is_available", "distributed", "ddp", "multi_gpu", "is_dist", "use_dist", "is_parallel")
_SIZES = ("world_size", "num_processes", "get_world_size", "num_gpus", "n_gpu")


def several_processes(module: SourceModule, test: ast.expr) -> bool | None:
    """What `test` answers in a run with several processes; None where it asks something else as well."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = several_processes(module, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = {several_processes(module, value) for value in test.values}
        decisive = isinstance(test.op, ast.Or)
        if decisive in answers:
            return decisive
        return answers.pop() if len(answers) == 1 else None
    if isinstance(test, ast.Compare):
        return _compared(module, test) if len(test.ops) == 1 else None
    if not isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
        return None
    name = last(dotted(test.func if isinstance(test, ast.Call) else test)).lower()
    return True if any(word in name for word in _WORDS) else None


def is_of_one_process(module: SourceModule, node: ast.AST) -> bool:
    """True in the branch of such a test that a run with several processes does not take."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and below is not up.test:
            several = several_processes(module, up.test)
            if several is not None and several is any(s is below for s in up.orelse):
                return True
        below = up
    return False


def _compared(module: SourceModule, test: ast.Compare) -> bool | None:
    left, op, right = test.left, test.ops[0], ast.unparse(test.comparators[0]).strip("'\"")
    if right in ("None", "-1") and rank_source(module, left) is not None:
        if isinstance(op, (ast.NotEq, ast.IsNot, ast.Gt)):
            return True
        return False if isinstance(op, (ast.Eq, ast.Is)) else None
    name = last(dotted(left.func if isinstance(left, ast.Call) else left)).lower()
    if right == "None" and name.endswith("sampler") and isinstance(op, (ast.Is, ast.IsNot)):
        return isinstance(op, ast.IsNot)  # one process alone has none
    if any(word in name for word in _SIZES) and right == "2" and isinstance(op, (ast.Lt, ast.GtE)):
        return isinstance(op, ast.GtE)
    if not any(word in name for word in _SIZES) or right not in ("0", "1"):
        return None
    if isinstance(op, ast.Gt) or (isinstance(op, ast.NotEq) and right == "1"):
        return True
    return False if (isinstance(op, (ast.Eq, ast.LtE)) or (isinstance(op, ast.Lt) and right == "1")) else None
