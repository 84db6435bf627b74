"""A `try` round the import of a package that may be missing, and what is set up by it: all ranks have the package, or none."""

from __future__ import annotations

import ast
import sys

from codemods.analysis.variance.exits import calls_in
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_THERE = sys.stdlib_module_names | {"torch"}  # what no process is without


def sets_up(project: Project, module: SourceModule, node: ast.Try | ast.TryStar) -> list[ast.Call]:
    """The calls of a body that begins with such an import and calls nothing but what it imports; none of any other body.

    In a loop, and where it goes through something itself, it is work.
    """
    if not isinstance(node.body[0], (ast.Import, ast.ImportFrom)) or _is_work(module, node):
        return []
    imports = [s for s in node.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    if not all(_may_be_missing(project, module, name) for s in imports for name in _packages(s)):
        return []
    names = {alias.asname or alias.name.partition(".")[0] for s in imports for alias in s.names}
    calls = list(calls_in(node.body))
    return calls if all(_root(call.func) in names for call in calls) else []


def _packages(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "" if not node.level else ""]
    return [alias.name for alias in node.names]


def _may_be_missing(project: Project, module: SourceModule, name: str) -> bool:
    """True for a package that has to be installed."""
    return bool(name) and name.partition(".")[0] not in _THERE and project.resolve(name, module.path) is None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_work(module: SourceModule, node: ast.Try | ast.TryStar) -> bool:
    loops = (ast.For, ast.AsyncFor, ast.While)
    if any(isinstance(n, loops) for s in node.body for n in walk(s)):
        return True
    for up in module.ancestors(node):
        if isinstance(up, loops):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return False
