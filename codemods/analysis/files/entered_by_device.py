"""Is a function only called under a test of the GPU's number? Then one process of each node comes there."""

from __future__ import annotations

import ast

from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.ranks.device_tests import asks_for_a_device
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 3


def is_entered_by_device(project: Project, module: SourceModule, node: ast.AST, depth: int = _DEPTH) -> bool:
    """True where `if self.device == 0:` stands round the place, or round every call that leads to it."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test and asks_for_a_device(module, up.test):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    function = module.function_of(node)
    if function is None or depth == 0:
        return False
    callers = callers_of(project, module, function)
    return bool(callers) and all(is_entered_by_device(project, s.module, s.call, depth - 1) for s in callers)
