"""Functions that are called only where the process group was started above, under no condition: there always is one."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.guards.entry_points import starts_group
from codemods.analysis.names import last, qualified
from codemods.analysis.positions import above
from codemods.analysis.ranks.reach import called_by_framework
from codemods.analysis.ranks.uses import CallSite, calls_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_DEPTH = 3
_LEAVES = (ast.Return, ast.Raise)


def is_called_below_a_start(project: Project, module: SourceModule, function: FunctionNode, depth: int = _DEPTH) -> bool:
    """True where every call of the function is known, and a plain start of the group stands above it, or above its function's."""
    if depth == 0 or called_by_framework(project, module, function) is not None:
        return False
    sites = [s for s in calls_of(project, module, function) or () if not is_test_file(s.module.path)]
    return bool(sites) and all(_is_below(project, site, depth) for site in sites)


def _is_below(project: Project, site: CallSite, depth: int) -> bool:
    outer = site.module.function_of(site.call)
    for statement in _above(site.module, site.call):
        if starts_surely(project, site.module, statement):
            return True
    return outer is not None and is_called_below_a_start(project, site.module, outer, depth - 1)


def _above(module: SourceModule, node: ast.AST) -> list[ast.stmt]:
    """The statements of the blocks round a place that are run before it."""
    found: list[ast.stmt] = []
    below = node
    for up in module.ancestors(node):
        found += above(module, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        below = up
    return found


def starts_surely(project: Project, module: SourceModule, statement: ast.stmt, depth: int = 2) -> bool:
    """True for a statement that starts the group, itself or by a function that does so before it can come back."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    if last(qualified(module, call.func)) == "init_process_group":
        return starts_group(module, call)
    site = called_function(project, module, call) if depth else None
    if site is None or isinstance(site.node, ast.AsyncFunctionDef):
        return False
    for inner in site.node.body:
        if starts_surely(project, site.module, inner, depth - 1):
            return True
        if any(isinstance(n, _LEAVES) for n in (inner, *walk_scope(inner))):
            return False
    return False
