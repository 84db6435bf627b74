"""Functions that give something on rank 0 and None on the others: what is gathered for one, what one alone has read."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_OF_ZERO = (Ranks.ZERO, Ranks.LOCAL_ZERO)


def gives_on_rank_zero(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where each `return` of a value, in the function of the project that is called, stands where rank 0 alone comes."""
    site = called_function(project, module, call)
    if site is None or site.node.name == "__init__":
        return False
    return project.memo(("gives on rank zero", *site.key), lambda: _gives(project, site))


def _gives(project: Project, site: FunctionSite) -> bool:
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(site.node)):
        return False
    returned = [n for n in walk_scope(site.node) if isinstance(n, ast.Return)]
    full = [r for r in returned if r.value is not None and not (isinstance(r.value, ast.Constant) and r.value.value is None)]
    return bool(full) and all(ranks_at(site.module, r, project=project) in _OF_ZERO for r in full)
