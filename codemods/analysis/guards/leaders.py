"""Which rank is sure to do what stands under a guard, where the others do it only under a setting, if at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.ranks.rank_guards import Guard, Ranks, negated, split_of
from codemods.analysis.ranks.rank_tests import means_process_group
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_ZEROS = (Ranks.ZERO, Ranks.LOCAL_ZERO)


def leader(project: Project, module: SourceModule, guard: Guard) -> Ranks | None:
    """ZERO or LOCAL_ZERO where nobody else passes, or where `debug or rank == 0` lets it through whatever the setting is.

    A function that asks its own parameter (`everywhere or rank == 0`) is told by each caller which ranks do it, and what asks
    for a file (`not exists(path) or rank == 0`) lets each rank through that needs to.
    """
    if guard.ranks in _ZEROS:
        return guard.ranks
    zero = negated(guard.rest)
    if guard.ranks is not Ranks.UNKNOWN or zero not in _ZEROS or not isinstance(guard.node, (ast.If, ast.IfExp)):
        return None
    others = list(_not_of_ranks(project, module, guard.node.test))
    return zero if others and all(_is_setting(module, o) for o in others) else None


def lets_all_in(project: Project, module: SourceModule, anchor: ast.stmt) -> str:
    """`args.debug` of `if args.debug or rank == 0:`: where it is set, every rank passes; "" where nothing lets the others in."""
    split = split_of(module, anchor.test, project) if isinstance(anchor, ast.If) else None
    if split is None or Ranks.UNKNOWN not in (split.true, split.false) or not isinstance(anchor, ast.If):
        return ""
    if {negated(split.true), negated(split.false)}.isdisjoint(_ZEROS):
        return ""
    return " / ".join(module.text_of(o) for o in _not_of_ranks(project, module, anchor.test))


def _not_of_ranks(project: Project, module: SourceModule, test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _not_of_ranks(project, module, value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _not_of_ranks(project, module, test.operand)
    elif split_of(module, test, project) is None and not means_process_group(module, test):
        yield test


def _is_setting(module: SourceModule, test: ast.expr) -> bool:
    """True for what no call gives: it was decided before the program came here, and for all ranks alike."""
    if any(isinstance(n, ast.Call) for n in walk(test)):
        return False
    for node in walk(test):
        if isinstance(node, ast.Name) and not isinstance(module.parent(node), (ast.Attribute, ast.Subscript)):
            if not _is_given_plainly(bindings_of(module, node)):
                return False
        elif isinstance(node, ast.Attribute) and not _is_given_plainly(attribute_bindings(module, node)):
            return False
    return True


def _is_given_plainly(bound: list[Binding]) -> bool:
    return all(b.value is not None and not any(isinstance(n, ast.Call) for n in walk(b.value)) for b in bound)
