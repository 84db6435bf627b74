"""A synced log of Lightning that a helper makes under a test of its own, for those who call the helper on some ranks alone.

Who calls `log(..., sync_dist=True)` waits for every rank, whatever the test asks, as long as it asks for no ranks.
"""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import run_function
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reached_collectives import Reached
from codemods.analysis.ranks.trace_items import Step
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OF_RUNS = lazy(r"(?i)rank|world|dist|sync|multi|gpu|ddp|device|main|master|proc|parallel|strategy|initiali|zero|node")


def logged_under_a_test(project: Project, module: SourceModule, call: ast.Call) -> Reached | None:
    """The log that a call of a project function comes to where a test of the function holds."""
    site = run_function(project, module, call)
    if site is None or not site.module.holds(b"sync_dist") or keeps_its_results(site.node):
        return None
    for node in walk_scope(site.node):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in ("log", "log_dict"):
            continue
        found = collective_at(site.module, node, project)
        if found is None or not found.text.endswith("(sync_dist=True)") or not any(_is_true(k) for k in node.keywords):
            continue
        test = _test_over(site.module, site.node, node)
        if test is not None and ranks_at(site.module, node, project=project) is Ranks.ALL:
            text = f"{found.text} where line {test.lineno} lets it"
            first = Step(module.path, call.lineno, f"{module.text_of(call.func)}()")
            return Reached(found, (first, Step(site.module.path, node.lineno, text)))
    return None


def _is_true(keyword: ast.keyword) -> bool:
    return keyword.arg == "sync_dist" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True


def _test_over(module: SourceModule, function: FunctionNode, node: ast.AST) -> ast.expr | None:
    """The innermost test over a place; None where there is none, or where one may ask how many processes there are."""
    tests: list[ast.expr] = []
    below = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and below is not up.test:
            tests.append(up.test)
        below = up
    return tests[0] if tests and not any(_OF_RUNS.search(module.text_of(t)) for t in tests) else None
