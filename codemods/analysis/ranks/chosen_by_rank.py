"""Does the rank choose which function a call comes to? `roles[rank](args)`, `(serve if rank == 0 else work)(args)`.

Each function runs on some ranks alone then, though every rank makes the call.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 3  # names that hold what was chosen


def is_chosen_by_rank(project: Project, module: SourceModule, func: ast.expr, depth: int = 0) -> bool:
    """True for what a call calls, if a rank, or a test of one, picks it out of several."""
    if isinstance(func, ast.IfExp):
        return _speaks(project, module, func.test)
    if isinstance(func, ast.Subscript):
        return _speaks(project, module, func.slice)
    if isinstance(func, ast.Call) and isinstance(func.func, ast.Attribute) and func.func.attr in ("get", "pop"):
        return any(_speaks(project, module, a) for a in func.args[:1])
    if isinstance(func, ast.Name) and depth < _DEPTH:
        bound = bindings_of(module, func)
        return any(b.value is not None and is_chosen_by_rank(project, module, b.value, depth + 1) for b in bound)
    return False


def is_dealt_by_rank(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for a function that stands in a table out of which a rank picks one: `roles = [serve] + [work] * n; roles[rank]()`."""
    table = node
    while isinstance(up := module.parent(table), (ast.List, ast.Tuple, ast.Dict, ast.BinOp)):
        table = up
    if table is node:
        return isinstance(up, ast.Call) and node in up.args[1:] and is_chosen_by_rank(project, module, up)  # `.get(rank, work)`
    held = module.parent(table)
    reads: list[ast.expr] = [table]
    if isinstance(held, ast.Assign) and len(held.targets) == 1 and isinstance(target := held.targets[0], ast.Name):
        reads = list(module.reads_of(target.id))
    return any(_is_picked(project, module, read) for read in reads)


def _is_picked(project: Project, module: SourceModule, table: ast.expr) -> bool:
    up = module.parent(table)
    if isinstance(up, ast.Subscript) and up.value is table:
        return is_chosen_by_rank(project, module, up)
    call = module.parent(up) if isinstance(up, ast.Attribute) else None
    return isinstance(call, ast.Call) and call.func is up and is_chosen_by_rank(project, module, call)


def _speaks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    parts = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
    if any(known_split(module, n, project) is not None for n in parts):
        return True
    return any(rank_source(module, n, project) is not None for n in parts if isinstance(n, (ast.Name, ast.Attribute, ast.Call)))
