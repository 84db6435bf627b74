"""Which ranks come to a statement, by the plain tests of its function: what tests of ranks may ask while they are read."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.analysis.positions import above
from codemods.analysis.ranks.leaving import leaves
from codemods.analysis.ranks.rank_sets import Ranks, Split, both
from codemods.files.source import SourceModule

Says = Callable[[ast.expr], Split | None]


def plain_ranks(module: SourceModule, node: ast.AST, says: Says) -> Ranks:
    """The ranks that come to `node` within its function, by the tests round it and the exits above it in the same blocks."""
    ranks = Ranks.ALL
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and below is not up.test and (split := says(up.test)) is not None:
            body = up.body if isinstance(up.body, list) else [up.body]
            ranks = both(ranks, split.true if any(s is below for s in body) else split.false)
        for statement in above(module, below):
            if isinstance(statement, ast.If) and not statement.orelse and leaves(statement.body):
                if (split := says(statement.test)) is not None:
                    ranks = both(ranks, split.false)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ranks
        below = up
    return ranks
