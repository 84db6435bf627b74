"""A wait for all ranks that a clean-up function of the project comes to wherever there is a process group."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.literals import is_none, is_true
from codemods.analysis.model.signatures import returned
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_tests import asks_for_group
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEPTH = 1


def wait_inside(
    project: Project, module: SourceModule, call: ast.Call, depth: int = 0
) -> tuple[SourceModule, ast.Call] | None:
    """(file, call) of the wait that the called function comes to under no test but one for the process group."""
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__" or isinstance(site.node, ast.AsyncFunctionDef):
        return None
    for inner in sorted((n for n in walk(site.node) if isinstance(n, ast.Call)), key=lambda n: n.lineno):
        found = collective_at(site.module, inner, project)
        waits = (site.module, inner) if found is not None and found.waits_only else None
        if waits is None and depth < _DEPTH:
            waits = wait_inside(project, site.module, inner, depth + 1)  # a barrier of the project's own
        if waits is not None:
            tests = _tests(site.module, site.node, inner)
            return waits if all(_holds_with_a_group(project, site.module, t) for t in tests) else None
    return None


def _tests(module: SourceModule, function: FunctionNode, node: ast.Call) -> Iterator[ast.expr | None]:
    """What decides whether the function comes to the call: the tests round it, and those by which it leaves above."""
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.If):
            yield up.test
        elif not isinstance(up, (ast.Expr, ast.With, ast.Try)) and not _is_only_case(up):
            yield None  # a loop, a handler, an inner function
    for test in (n for n in walk(function) if isinstance(n, ast.If) and n.lineno < node.lineno):
        if any(isinstance(n, (ast.Return, ast.Raise)) for n in walk(test)):
            yield test.test


def _is_only_case(node: ast.AST) -> bool:
    """True for a `match` of one case that takes anything, and for that case."""
    if isinstance(node, ast.Match):
        return len(node.cases) == 1 and _is_only_case(node.cases[0])
    takes_all = isinstance(node, ast.match_case) and isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None
    return takes_all and isinstance(node, ast.match_case) and node.guard is None


def _holds_with_a_group(project: Project, module: SourceModule, test: ast.expr | None) -> bool:
    """True for a test of the process group, `accelerator is not None`, several of them, and a helper of the project for one."""
    if test is None or is_true(test):
        return test is not None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _holds_with_a_group(project, module, test.operand)
    if isinstance(test, ast.BoolOp):
        return all(_holds_with_a_group(project, module, value) for value in test.values)
    if isinstance(test, ast.Compare) and is_none(test.comparators[0]):
        return len(test.ops) == 1
    plain = isinstance(test, ast.Call) and not (test.args or test.keywords)
    helper = called_function(project, module, test) if plain and isinstance(test, ast.Call) else None
    if helper is None:
        return asks_for_group(test)
    given = returned(helper.node, helper.module)
    return bool(given) and all(map(asks_for_group, given))
