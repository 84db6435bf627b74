"""What a helper does to a model in front of the wrap: its calls stand above that, in the function that wraps."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule, stands_above
from codemods.store.project import Project

_CLIMBS = 3  # helpers of helpers


def is_called_in_front(project: Project, module: SourceModule, node: ast.AST, home: SourceModule, wrap: ast.AST) -> bool:
    """True where a statement stands in a function that is only called above a wrap, through however few helpers."""
    return _in_front(project, module, node, home, wrap, _CLIMBS)


def _in_front(
    project: Project, module: SourceModule, node: ast.AST, home: SourceModule, wrap: ast.AST, climbs: int
) -> bool:
    function = module.function_of(node)
    if function is None or climbs == 0 or (module is home and function is home.function_of(wrap)):
        return False
    sites = calls_of(project, module, function) or ()
    return bool(sites) and all(
        _stands_above(s.module, s.call, home, wrap) or _in_front(project, s.module, s.call, home, wrap, climbs - 1) for s in sites
    )


def _stands_above(module: SourceModule, call: ast.AST, home: SourceModule, wrap: ast.AST) -> bool:
    return module is home and module.function_of(call) is home.function_of(wrap) and stands_above(call, wrap)
