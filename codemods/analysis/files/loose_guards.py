"""Saves under a test of the rank that an `or` beside it undoes: `if first or better and rank == 0` lets every rank in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.every_rank import Way, way_of_every_rank
from codemods.analysis.files.own_paths import is_path_of_one
from codemods.analysis.files.written_saves import Save, saves_in
from codemods.analysis.output.effects import names_rank
from codemods.analysis.ranks.rank_guards import Ranks, split_of
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class LooseGuard:
    """at: the statement whose test it is. free: what lets every rank in. meant: the test that holds on rank 0 alone."""

    at: ast.If
    save: Save
    free: str
    meant: str
    way: Way


def loose_guards(project: Project, module: SourceModule) -> Iterator[LooseGuard]:
    """One for each test, with the first save below it."""
    told = set[int]()
    for save in saves_in(project, module):
        for guard in _tests_round(module, save.call):
            found = _loose(project, module, guard, save) if id(guard) not in told else None
            if found is not None:
                told.add(id(guard))
                yield found


def _tests_round(module: SourceModule, node: ast.AST) -> Iterator[ast.If]:
    """The tests whose bodies hold the place in its function, as long as none of those inside speaks of ranks."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(up, ast.If):
            if any(below is s for s in up.body):
                yield up
            if not isinstance(up.test, ast.BoolOp) and split_of(module, up.test) is not None:
                return
        below = up


def _loose(project: Project, module: SourceModule, guard: ast.If, save: Save) -> LooseGuard | None:
    test = guard.test
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
        return None
    bound = [v for v in test.values if _asks_for_rank_zero(project, module, v)]
    free = [v for v in test.values if not any(v is b for b in bound)]
    if len(bound) != 1 or not free or not isinstance(bound[0], ast.BoolOp) or _is_in_brackets(module, bound[0]):
        return None
    if any(_may_mean_ranks(project, module, v) for v in free) or is_path_of_one(project, module, save.path):
        return None
    if ranks_reaching(project, module, guard) is not Ranks.ALL or (way := way_of_every_rank(project, module, guard)) is None:
        return None
    (asked,) = (v for v in bound[0].values if _is_rank_zero(project, module, v))
    rest = " and ".join(module.text_of(v) for v in bound[0].values if v is not asked)
    arms = [rest if v is bound[0] else module.text_of(v) for v in test.values]
    meant = " ".join(f"({' or '.join(arms)}) and {module.text_of(asked)}".split())
    return LooseGuard(guard, save, " ".join(" or ".join(map(module.text_of, free)).split()), meant, way)


def _asks_for_rank_zero(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for `better and rank == 0`: one operand that holds on rank 0 alone, and others that do not speak of ranks."""
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.And):
        return False
    asked = [v for v in node.values if _is_rank_zero(project, module, v)]
    return len(asked) == 1 and not any(_may_mean_ranks(project, module, v) for v in node.values if v is not asked[0])


def _is_rank_zero(project: Project, module: SourceModule, node: ast.expr) -> bool:
    found = split_of(module, node, project)
    return found is not None and found.alone and found.true in (Ranks.ZERO, Ranks.LOCAL_ZERO)


def _may_mean_ranks(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for `not args.distributed`, which holds for one process alone, and for what is called after ranks."""
    return split_of(module, node, project) is not None or means_process_group(module, node) or names_rank(module.text_of(node))


def _is_in_brackets(module: SourceModule, node: ast.expr) -> bool:
    """True for `a or (b and c)`: whoever writes the brackets means it."""
    outer = module.parent(node)
    assert isinstance(outer, ast.BoolOp)
    text, whole = module.text_of(node), module.text_of(outer)
    start = whole.find(text)
    return whole[:start].rstrip().endswith("(") and whole[start + len(text) :].lstrip().startswith(")")
