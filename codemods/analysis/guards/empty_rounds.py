"""Ranks that leave because they have nothing to go through, above a loop in which the others meet: the loop parts them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.values import Cause
from codemods.files.source import walk
from codemods.runtime.lazy_pattern import lazy

_PICKED = lazy(r" if |append\(|extend\(|unique")  # by what the elements hold

def is_of_a_loop(parted: Mismatch, others: Iterable[Mismatch]) -> bool:
    """True for `if len(names) == 0: return` above a loop over the rank's own keys, each of whose rounds calls what is missed.

    To agree about the exit would change nothing: the rounds differ all the same, and under other keys. DDP411 reports such loops.
    """
    if parted.form is not Form.LEAVES or parted.meeting is None or not isinstance(parted.node, ast.If):
        return False
    if parted.value.cause is not Cause.DATA or not _asks_for_nothing(parted.node.test):
        return False
    line = parted.meeting.steps[0].line
    return any(_meets_in(other, line) for other in others)


def _meets_in(other: Mismatch, line: int) -> bool:
    if other.form is not Form.ROUNDS or not isinstance(other.node, ast.For) or other.value.cause is not Cause.DATA:
        return False
    held = any(isinstance(n, ast.Name) and n.id == "self" for n in walk(other.node.iter))
    picked = other.value.keyed or any(_PICKED.search(link.text) for link in other.value.chain)
    own = other.value.sized and picked and not held
    return own and other.meeting is not None and other.meeting.steps[0].line == line


def _asks_for_nothing(test: ast.expr) -> bool:
    """True for `len(x) == 0`, `len(x) < 1` and `not x`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, (ast.Name, ast.Attribute))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Call):
        return False
    asked = isinstance(test.left.func, ast.Name) and test.left.func.id == "len"
    right, op = test.comparators[0], test.ops[0]
    value = right.value if isinstance(right, ast.Constant) else None
    return asked and ((value == 0 and isinstance(op, (ast.Eq, ast.LtE))) or (value == 1 and isinstance(op, ast.Lt)))
