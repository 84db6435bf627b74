"""Errors that a handler shows and takes, of a `try` in which the ranks meet: whoever gets one leaves the others waiting."""

from __future__ import annotations

import ast
from collections.abc import Collection

from codemods.analysis.handlers import kinds_of, takes
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import behind
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_BROAD = frozenset({"Exception", "BaseException"})
_SHOWING = frozenset({"print_exc", "print_exception", "format_exc", "exception"})


def keeps_ranks_going(project: Project, module: SourceModule, attempt: ast.Try | ast.TryStar, below: ast.AST) -> bool:
    """False where an error in the part `below` of a `try` ends the rank, or its share of what the ranks do together.

    That is a `finally`; a `try` without handlers; and one whose broad handler raises again, or shows the error as a failure,
    where the ranks meet in what is left out then. A handler of one kind of error is there for what is expected.
    """
    if any(s is below for s in attempt.finalbody):
        return False
    if not any(s is below for s in attempt.body):
        return True
    if not attempt.handlers:
        return False
    if len(attempt.handlers) > 1 or not _is_broad(attempt.handlers[0]):
        return True
    body = attempt.handlers[0].body
    if isinstance(body[-1], ast.Raise) and body[-1].exc is None:
        return False
    return not (_shows(body) and _meets(project, module, below))


def is_behind_an_error(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in the broad handler of a `try` in which the ranks meet: an error there is one rank's own, as a rule."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, (ast.Try, ast.TryStar)) and isinstance(below, ast.ExceptHandler) and _is_broad(below):
            if _meets(project, module, up.body[0]):
                return True
        below = up
    return False


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return takes(handler, _BROAD) and all(last(dotted(kind)) in _BROAD for kind in kinds_of(handler))


def _shows(body: Collection[ast.stmt]) -> bool:
    calls = (n for s in body for n in walk(s) if isinstance(n, ast.Call))
    return any(last(dotted(c.func)) in _SHOWING for c in calls)


def _meets(project: Project, module: SourceModule, below: ast.AST) -> bool:
    """True where the ranks meet in the statement, or in one of those behind it in the `try`."""
    nodes = (n for s in (below, *behind(module, below)) for n in walk(s) if isinstance(n, ast.Call))
    return any(collective_at(module, n, project) is not None or reached_by(project, module, n) is not None for n in nodes)
