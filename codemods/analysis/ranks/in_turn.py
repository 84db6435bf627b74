"""Sections that the ranks enter one after the other: `with main_process_first():`, or a barrier of the others above and one
of rank 0 below. What stands there finds another state on each rank, and is done once on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, ranks_of_test
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.data.rank_names import ORDERED_CONTEXTS
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

_FIRST: tuple[Ranks | None, ...] = (Ranks.ZERO, Ranks.LOCAL_ZERO)
_LATER: tuple[Ranks | None, ...] = (Ranks.OTHERS, Ranks.LOCAL_OTHERS)


def in_turn(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place in such a section of its function."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.With, ast.AsyncWith)) and not isinstance(below, ast.withitem):
            if any(_orders(project, module, item.context_expr) for item in up.items):
                return True
        if _between_barriers(project, module, below):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def _orders(project: Project, module: SourceModule, entered: ast.expr) -> bool:
    """True for a context of that kind, by its name, by what a name holds, or by the barriers round its `yield`."""
    if isinstance(entered, ast.Name):
        values = [b.value for b in bindings_of(module, entered)]
        return any(_orders(project, module, v) for v in values if isinstance(v, (ast.Call, ast.IfExp)))
    if isinstance(entered, ast.IfExp):
        return any(_orders(project, module, arm) for arm in (entered.body, entered.orelse))
    if not isinstance(entered, ast.Call):
        return last(dotted(entered)) in ORDERED_CONTEXTS
    if last(dotted(entered.func)) in ORDERED_CONTEXTS:
        return True
    site = called_function(project, module, entered)
    if site is None or not any(last(dotted(d)) == "contextmanager" for d in site.node.decorator_list):
        return False
    yields = [n for n in walk_scope(site.node) if isinstance(n, ast.Yield)]
    if any(in_turn(project, site.module, n) for n in yields):
        return True
    return len(yields) > 1 and _yields_by_rank(project, site.module, yields)


def _yields_by_rank(project: Project, module: SourceModule, yields: list[ast.Yield]) -> bool:
    """True for `if rank == 0: yield`, a barrier, `if rank > 0: yield`."""
    met: set[Ranks | None] = set()
    for found in yields:
        up = module.parent(module.statement_of(found))
        if isinstance(up, ast.If):
            met.add(ranks_of_test(module, up.test, project=project))
    return bool(met & {*_FIRST}) and bool(met & {*_LATER})


def _between_barriers(project: Project, module: SourceModule, below: ast.AST) -> bool:
    return _waits(project, module, above(module, below), _LATER) and _waits(project, module, behind(module, below), _FIRST)


def _waits(project: Project, module: SourceModule, block: Iterable[ast.stmt], ranks: tuple[Ranks | None, ...]) -> bool:
    """True where a statement of the block lets those ranks alone into a collective."""
    for statement in block:
        if isinstance(statement, ast.If) and ranks_of_test(module, statement.test, project=project) in ranks:
            for node in (n for s in statement.body for n in walk(s) if isinstance(n, ast.Call)):
                if collective_at(module, node, project) is not None or reached_by(project, module, node) is not None:
                    return True
    return False
