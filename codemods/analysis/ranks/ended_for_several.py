"""Programs that end where their settings name several devices, before they make a Trainer."""

from __future__ import annotations

import ast

from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.files.source import SourceModule


def ends_but_for_one(module: SourceModule, devices: ast.expr) -> bool:
    """True behind `if len(cfg["devices"]) != 1: exit()`, on each way to the Trainer."""
    text = ast.unparse(devices)
    below: ast.AST = devices
    for up in module.ancestors(devices):
        if isinstance(below, ast.stmt):
            before = (s for s in above(module, below) if isinstance(s, ast.If) and leaves(s.body))
            if any(_is_of_several(s.test, text) for s in before):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        below = up
    return False


def _is_of_several(test: ast.expr, devices: str) -> bool:
    """True for `len(devices) != 1`, `devices > 1`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.NotEq, ast.Gt)):
        return False
    limit = test.comparators[0]
    asked = ast.unparse(test.left)
    return isinstance(limit, ast.Constant) and limit.value == 1 and asked in (devices, f"len({devices})")
