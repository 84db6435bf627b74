"""Places that all ranks come to but in a mode that ends above for some: `if dry_run and rank == 0: ...; return`."""

from __future__ import annotations

import ast

from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.rank_guards import Guard, Ranks, guards_over
from codemods.analysis.ranks.reach import ranks_entering, ranks_reaching
from codemods.analysis.ranks.run_for_some import ranks_of_lambda
from codemods.files.source import SourceModule
from codemods.store.project import Project


def all_come(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True where every rank comes to `node`, in each run but those of a mode that ends above it for some."""
    if (ranks := ranks_reaching(project, module, node)) is not Ranks.UNKNOWN:
        return ranks is Ranks.ALL
    function = module.function_of(node)
    if function is None or module.function_of(function) is not None or in_turn(project, module, node):
        return False
    if ranks_of_lambda(project, module, node) is not Ranks.ALL or ranks_entering(project, module, function) is not Ranks.ALL:
        return False
    guards = guards_over(module, node, project=project)
    return all(guard.ranks is Ranks.ALL or _is_of_a_mode(project, module, node, guard) for guard in guards)


def _is_of_a_mode(project: Project, module: SourceModule, node: ast.AST, guard: Guard) -> bool:
    """True for an exit in a block round `node` that asks for more than the rank: without the mode, no rank takes it."""
    test = guard.node.test if guard.kind == "exit" and isinstance(guard.node, ast.If) and not guard.node.orelse else None
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return False
    if not any(up is module.parent(guard.node) for up in module.ancestors(node)):
        return False
    return any(known_split(module, one, project) is None and not names_rank(module.text_of(one)) for one in test.values)
