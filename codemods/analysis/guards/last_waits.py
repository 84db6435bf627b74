"""A wait for all ranks that a clean-up function of the project comes to wherever there is a process group."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.literals import is_none
from codemods.analysis.names import end_of
from codemods.analysis.ranks.collectives import collective_at
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_GROUP = frozenset({"is_available", "is_initialized", "is_torchelastic_launched"})


def wait_inside(project: Project, module: SourceModule, call: ast.Call) -> tuple[SourceModule, ast.Call] | None:
    """(file, call) of the wait that the called function comes to under no test but one for the process group."""
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__" or isinstance(site.node, ast.AsyncFunctionDef):
        return None
    for inner in sorted((n for n in walk(site.node) if isinstance(n, ast.Call)), key=lambda n: n.lineno):
        found = collective_at(site.module, inner, project)
        if found is not None and found.waits_only:
            return (site.module, inner) if all(map(_asks_for_group, _tests(site.module, site.node, inner))) else None
    return None


def _tests(module: SourceModule, function: FunctionNode, node: ast.Call) -> Iterator[ast.expr | None]:
    """What decides whether the function comes to the call: the tests round it, and those by which it leaves above."""
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If):
            yield up.test
        elif not isinstance(up, (ast.Expr, ast.With, ast.Try)):
            yield None  # a loop, a handler, an inner function
    for test in (n for n in walk(function) if isinstance(n, ast.If) and n.lineno < node.lineno):
        if any(isinstance(n, (ast.Return, ast.Raise)) for n in walk(test)):
            yield test.test


def _asks_for_group(test: ast.expr | None) -> bool:
    """True for `dist.is_initialized()`, `accelerator is not None`, `if not dist.is_available()`, and several of them."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_for_group(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(_asks_for_group, test.values))
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and is_none(test.comparators[0])
    return isinstance(test, ast.Call) and end_of(test.func) in _GROUP
