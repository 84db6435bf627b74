"""Which ranks a call leads to a place under a parameter: `if verbose:`, called with `verbose=is_main_process()`."""

from __future__ import annotations

import ast

from codemods.analysis.model.signatures import bind
from codemods.analysis.ranks.closed_branches import wanted_at
from codemods.analysis.ranks.rank_sets import Ranks, both
from codemods.analysis.ranks.rank_tests import split_of
from codemods.analysis.ranks.uses import Uses
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def told_by_rank(
    project: Project, module: SourceModule, function: FunctionNode, node: ast.AST, uses: Uses
) -> dict[ast.Call, Ranks]:
    """By call, the ranks on which what it gives the parameters lets the function come to `node`: calls that give a rank test."""
    asked = wanted_at(module, function, node)
    out: dict[ast.Call, Ranks] = {}
    for site in uses.calls if asked else ():
        given = bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef)) or {}
        ranks = Ranks.ALL
        for name, wanted in asked.items():
            value = given.get(name)
            split = split_of(site.module, value, project) if value is not None and not isinstance(value, ast.Constant) else None
            if split is not None:
                ranks = both(ranks, split.true if wanted else split.false)
        if ranks is not Ranks.ALL:
            out[site.call] = ranks
    return out
