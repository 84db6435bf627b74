"""Where the test of the rank stands that decides who comes to a function: in front of one of the calls that lead to it."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_guards import guards_over
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

_CLIMBS = 3


def asked_by_callers(project: Project, module: SourceModule, node: ast.AST, climbs: int = _CLIMBS) -> tuple[str, int] | None:
    """(file, line) of the first test of the rank over a call of the function that holds `node`, or over a call of its caller."""
    function = module.function_of(node)
    sites = calls_of(project, module, function) or () if function is not None and climbs else ()
    for site in sites:
        for guard in guards_over(site.module, site.call, project=project):
            if guard.ranks.some:
                return site.module.path, guard.line
    above = (asked_by_callers(project, site.module, site.call, climbs - 1) for site in sites)
    return next((found for found in above if found is not None), None)
