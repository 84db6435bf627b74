"""Places to which the first process of each node comes, by plain tests, and no other process."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over
from codemods.analysis.ranks.reach import ranks_entering
from codemods.files.source import SourceModule
from codemods.store.project import Project


def guards_of_each_node(project: Project, module: SourceModule, node: ast.AST) -> tuple[Guard, ...]:
    """The guards over such a place; none over any other, and in functions that not every rank enters."""
    guards = tuple(guards_over(module, node, project=project))
    telling = [g for g in guards if g.ranks.some]
    if not telling or any(g.kind not in ("if", "exit") or g.ranks is not Ranks.LOCAL_ZERO for g in telling):
        return ()
    function = module.function_of(node)
    return guards if function is None or not ranks_entering(project, module, function).some else ()
