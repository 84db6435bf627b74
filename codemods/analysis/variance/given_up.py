"""`except RuntimeError: return None`: whether there is a result is a matter of what the body works on, a rank's own batch.

So it is whether anything is in a list that is empty then (`return []`), and in a name that the handler gives nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.handlers import kinds_of
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.exits import calls_in, is_exit
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause, How, Proof, Value, at_most, join, plain
from codemods.files.source import walk
from codemods.runtime.record import replace

_OF_ONE_RANK = frozenset({"Exception", "BaseException", "RuntimeError", "OutOfMemoryError"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Yield, ast.YieldFrom, ast.Assign, ast.AugAssign, ast.AnnAssign)


def given_up(state: State, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> Value:
    """By what it differs that a handler gives back nothing; SAME for every other handler."""
    kinds = kinds_of(handler)
    if any(last(dotted(k)) not in _OF_ONE_RANK for k in kinds) or not _only_gives_up(handler):
        return SAME
    handed = [state.values[id(a)] for c in calls_in(node.body) for a in c.args if id(a) in state.values]
    value = plain(join(handed))
    if not value.params and value.cause is not Cause.DATA:
        return SAME
    link = state.link(handler, "an error in what is made of this rank's own data leads here", how=How.GIVEN_UP)
    return replace(at_most(value, Proof.LIKELY), sized=False, chain=(link, *value.chain[:2]))


def emptied(state: State, node: ast.expr | None, value: Value) -> Value:
    """What such a handler gives back: of an empty list it differs whether anything is in it."""
    if not is_empty(node) or not any(_is_given_up(c) for c in state.control) or not (value.cause.differs or value.params):
        return value
    return replace(value, sized=True, listed=True)


def of_returns(returns: Iterable[Value]) -> Value:
    """What a function gives back. Where only an error leaves it empty, that is told, and not what it holds besides."""
    found = list(returns)
    apart = [v for v in found if v.sized or v.optional or v.missing]
    joined = join(found)
    return replace(joined, chain=apart[0].chain) if len(apart) == 1 and _is_given_up(apart[0]) else joined


def is_empty(node: ast.expr | None) -> bool:
    """True for `[]`, `{}`, `()`, `list()` and `dict()`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and dotted(node.func) in ("list", "dict", "set") and not node.args and not node.keywords


def _is_given_up(value: Value) -> bool:
    return any(link.how is How.GIVEN_UP for link in value.chain)


def _only_gives_up(handler: ast.ExceptHandler) -> bool:
    """True where the handler says something and gives back None or an empty list: it makes no value of its own."""
    *before, end = handler.body
    gives = isinstance(end, ast.Return) and (end.value is None or is_none(end.value) or is_empty(end.value))
    return gives and not any(isinstance(n, _LEAVES) or (isinstance(n, ast.stmt) and is_exit(n)) for s in before for n in walk(s))
