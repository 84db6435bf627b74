"""Does anything call the function in which numbers are drawn?"""

from __future__ import annotations

import ast

from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 4


def is_drawn_by_somebody(project: Project, module: SourceModule, node: ast.AST, depth: int = _DEPTH) -> bool:
    """False in a plain function that is handed on to nobody, and called by none but functions of that kind."""
    function = module.function_of(node)
    if depth == 0 or function is None or not isinstance(module.parent(function), ast.Module) or function.decorator_list:
        return True
    if function.name.startswith("main"):
        return True
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on:
        return True
    return any(is_drawn_by_somebody(project, s.module, s.call, depth - 1) for s in used.calls)
