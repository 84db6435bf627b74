"""Calls of one function in both arms of a test of the rank: every rank makes one (`if rank == 0: main() else: main()`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_sets import negated
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import SourceModule
from codemods.store.project import Project


def in_both_arms(project: Project, calls: tuple[CallSite, ...]) -> bool:
    """True where one of the calls stands in the one arm, and another in the other arm, of a test that the rank alone decides.

    Two tests one behind the other are no arms: there the ranks take turns.
    """
    arms = [(id(test), site.module, test, first) for site in calls for test, first in _arms(site.module, site.call)]
    first_arms = {key for key, _, _, first in arms if first}
    for key, module, test, first in arms:
        if first or key not in first_arms:
            continue
        split = known_split(module, test.test, project)
        if split is not None and split.alone and split.true.some and split.false is negated(split.true):
            return True
    return False


def _arms(module: SourceModule, call: ast.Call) -> Iterator[tuple[ast.If, bool]]:
    """The test that decides over the call, up to the first one that lets through more or less than an arm as a whole."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If):
            yield up, below in up.body
            return
        if not isinstance(up, (ast.Expr, ast.Assign, ast.With, ast.Call, ast.Return)):
            return
        below = up
