"""Which ranks come to a place in a run that does not fail: an exit by which one rank gives up is left out."""

from __future__ import annotations

import ast

from codemods.analysis.ranks.rank_guards import Guard, Ranks, both, guards_over, ranks_at
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project


def ranks_unless_one_fails(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """As `ranks_at`; behind `if is_main: if exists(log): return -1` every rank of a run that goes on counts."""
    ranks = ranks_at(module, node, project=project)
    if ranks is not Ranks.UNKNOWN or module.function_of(node) is None:
        return ranks
    over = list(guards_over(module, node, project=project))
    if not any(_gives_up(guard) for guard in over):
        return ranks
    kept = Ranks.ALL
    for guard in over:
        kept = kept if _gives_up(guard) else both(kept, guard.ranks)
    return kept


def _gives_up(guard: Guard) -> bool:
    """True for an exit under a further test that hands a negative number to whoever ends the program."""
    if guard.kind != "exit" or guard.alone or guard.ranks is not Ranks.UNKNOWN:
        return False
    ends = [n for n in walk_scope(guard.node) if isinstance(n, (ast.Return, ast.Continue, ast.Break))]
    return bool(ends) and all(isinstance(n, ast.Return) and _is_negative(n.value) for n in ends)


def _is_negative(value: ast.expr | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) and isinstance(value.operand, ast.Constant)
