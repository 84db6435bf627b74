"""Shares by number: what stands under `if i % world_size == rank`, or behind `if i % world_size != rank: continue`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.shares import divides
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, How, Value, along, plain
from codemods.files.source import walk
from codemods.runtime.record import record, replace

_ENDLESS = frozenset(f"{holder}{name}" for holder in ("", "itertools.") for name in ("count", "cycle", "repeat"))
_Loop = ast.For | ast.AsyncFor | ast.comprehension


@record
class NumberedShare:
    """share: how what is let through differs between the ranks; SAME where all let as many through. when: by which answer."""

    share: Value
    when: bool


def numbered_share(state: State, test: ast.expr) -> NumberedShare | None:
    """What a test of a loop lets through that deals out the elements by their numbers, None for any other test."""
    when = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, when = test.operand, not when
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and when:  # `several and i % world != rank`
        return next(filter(None, (numbered_share(state, part) for part in test.values)), None)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return None
    for number, rank in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        loop = _numbering(state, test, number)
        if loop is not None and (found := _share(state, test, loop, rank)) is not None:
            return NumberedShare(found, when is isinstance(test.ops[0], ast.Eq))
    return None


def left_by_others(node: ast.stmt) -> bool:
    """True for `if …: continue`: what stands below it in the loop is run where the test was not passed."""
    return isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Continue)


def _share(state: State, test: ast.Compare, loop: _Loop, rank: ast.expr) -> Value | None:
    value = state.value(rank)
    if value.cause is not Cause.RANK and not (value.params and not value.cause.differs):
        return None
    if divides(state, unpacked(loop.iter)):
        return SAME
    link = state.link(test, f"`{state.short(test)}` is each rank's own share", how=How.SHARE)
    if value.cause is Cause.RANK:
        return Value(Cause.DATA, value.proof, (link,), sized=True)
    return replace(along(plain(value), link), sized=True)


def _numbering(state: State, test: ast.Compare, number: ast.expr) -> _Loop | None:
    """The loop that `i` of `i % world_size` counts, or takes its elements from; None where it never ends."""
    if not isinstance(number, ast.BinOp) or not isinstance(number.op, ast.Mod) or isinstance(number.right, ast.Constant):
        return None
    names = {n.id for n in walk(number.left) if isinstance(n, ast.Name)}
    found: _Loop | None = None
    for up in state.module.ancestors(test):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(up, ast.While):
            return None
        loops = up.generators if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) else [up]
        for loop in loops:
            if not isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)):
                continue
            if any(isinstance(n, ast.Call) and dotted(n.func) in _ENDLESS for n in walk(loop.iter)):
                return None
            if found is None and any(isinstance(n, ast.Name) and n.id in names for n in walk(loop.target)):
                found = loop
    return found
