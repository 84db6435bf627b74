"""`except RuntimeError: return None`: whether there is a result is a matter of what the body works on, a rank's own batch."""

from __future__ import annotations

import ast

from codemods.analysis.handlers import kinds_of
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.exits import calls_in
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, Proof, Value, at_most, join, plain
from codemods.runtime.record import replace

_OF_ONE_RANK = frozenset({"Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})


def given_up(state: State, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> Value:
    """By what it differs that a handler gives back nothing; SAME for every other handler."""
    kinds = kinds_of(handler)
    if any(last(dotted(k)) not in _OF_ONE_RANK for k in kinds) or not _only_gives_up(handler):
        return SAME
    handed = [state.values[id(a)] for c in calls_in(node.body) for a in c.args if id(a) in state.values]
    value = plain(join(handed))
    if not value.params and value.cause is not Cause.DATA:
        return SAME
    link = state.link(handler, "an error in what is made of this rank's own data leads here")
    return replace(at_most(value, Proof.LIKELY), sized=False, chain=(link, *value.chain[:2]))


def _only_gives_up(handler: ast.ExceptHandler) -> bool:
    """True where the handler says something and gives back None: it makes no value of its own."""
    *before, end = handler.body
    gives = isinstance(end, ast.Return) and (end.value is None or is_none(end.value))
    return gives and all(isinstance(s, (ast.Expr, ast.Pass, ast.Delete)) for s in before)
