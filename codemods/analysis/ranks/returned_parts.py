"""What a part of a tuple is that a function of the project gives back: `rank, local_rank, size = set_up()`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding
from codemods.analysis.call_graph import called_function
from codemods.analysis.ranks.parts import part_of, place_of
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_FEW = 3  # returns


def returned_parts(project: Project, module: SourceModule, name: str, bound: Binding) -> list[tuple[SourceModule, ast.expr]]:
    """The values of `name` in `name, … = f()`, each with its file; nothing where one of them is not shown."""
    assign, call = bound.node, bound.value
    if not bound.part or not isinstance(assign, ast.Assign) or not isinstance(call, ast.Call):
        return []
    place = place_of(assign.targets[0], name) if len(assign.targets) == 1 else None
    site = called_function(project, module, call) if place is not None else None
    if site is None or place is None or site.node.decorator_list or isinstance(site.node, ast.AsyncFunctionDef):
        return []
    inside = list(walk_scope(site.node))
    given = [r.value for r in inside if isinstance(r, ast.Return)]
    if not given or len(given) > _FEW or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside):
        return []
    found = [part_of(value, place) for value in given]
    return [(site.module, value) for value in found if value is not None] if None not in found else []
