"""Is a place of a way on which the program ends right below, wherever there are several processes?

`if args.cache: features = model.extract(); if args.distributed: raise`: whoever runs several gets no further, and has that error
to see. What trains in between is seen before.
"""

from __future__ import annotations

import ast

from codemods.analysis.positions import position
from codemods.analysis.ranks.failing_statements import TRAINS
from codemods.analysis.ranks.several_processes import ending_for_several
from codemods.files.source import SourceModule, walk_scope

_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom)


def is_refused_below(module: SourceModule, node: ast.AST) -> bool:
    """True where a block round `node` goes on to a statement that ends every run of several processes."""
    below = node
    for up in module.ancestors(node):
        place = position(module, below)
        if place is not None and _ends_in(module, place.block, place.index):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.TryStar)):
            return False
        below = up
    return False


def _ends_in(module: SourceModule, block: list[ast.stmt], index: int) -> bool:
    """True where nothing that lies between the statement and the end of the program trains, or leaves the block."""
    for end in ending_for_several(module, block):
        if end <= index:
            continue
        between = block[index:end]
        return not any(TRAINS.search(module.text_of(s)) or _may_leave(s) for s in between)
    return False


def _may_leave(statement: ast.stmt) -> bool:
    return any(isinstance(n, _LEAVES) for n in (statement, *walk_scope(statement)))
