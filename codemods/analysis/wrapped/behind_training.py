"""What stands behind the last step of a training: a test of the best weights, say."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.uses import calls_of
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def is_behind_training(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where no backward pass follows: the function has made its last one above, or each of its callers has."""
    function = module.function_of(node)
    if _is_last(module, function, node):
        return True
    if function is None or _backwards(function):
        return False
    sites = calls_of(project, module, function)
    return bool(sites) and all(_is_last(s.module, s.module.function_of(s.call), s.call) for s in sites or ())


def _is_last(module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    lines = _backwards(function or module.tree)
    if not lines or max(lines) > getattr(node, "lineno", 0):
        return False
    return not any(isinstance(up, _LOOPS) and _backwards(up) for up in module.ancestors(node) if up is not function)


def _backwards(body: ast.AST) -> list[int]:
    calls = (n for n in walk(body) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return [c.lineno for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in BACKWARDS]
