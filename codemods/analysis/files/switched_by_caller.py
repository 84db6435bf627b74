"""Does a caller switch a place on for some ranks alone? `Log(path, keep=rank == 0)`, and `if keep: open(path)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.model.signatures import bind, is_bound
from codemods.analysis.names import is_parameter
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.files.source import SourceModule
from codemods.store.project import Project


def ranks_by_caller(project: Project, site: FunctionSite, node: ast.AST, module: SourceModule, call: ast.Call) -> Ranks:
    """The ranks that come to a place of the function `site`, by the tests of its parameters and what `call` gives for them."""
    names = set(_asked(site.module, node, site.node))
    given = bind(site.node, call, bound=is_bound(site.module, site.node)) if names else None
    for name in names & set(given or ()):
        ranks = ranks_of_test(module, (given or {})[name], project=project)
        if ranks is not None and ranks.some:
            return ranks
    return Ranks.ALL


def _asked(module: SourceModule, node: ast.AST, function: ast.AST) -> Iterator[str]:
    """The parameters that have to be true where a place runs; a place of another function has none."""
    below, names = node, list[str]()
    for up in module.ancestors(node):
        if up is function:
            yield from names
            return
        if (isinstance(up, ast.If) and below in up.body) or (isinstance(up, ast.IfExp) and below is up.body):
            names += _all_of(module, up.test)
        below = up


def _all_of(module: SourceModule, test: ast.expr) -> Iterator[str]:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    yield from (p.id for p in parts if isinstance(p, ast.Name) and is_parameter(module, p.id, p))
