"""Rounds of a loop that a rank may skip by itself: `if len(batch) == 0: continue` in front of the forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk

_COUNTERS = frozenset({"range", "enumerate", "count", "trange"})


def skipped_round(module: SourceModule, call: ast.Call) -> ast.stmt | None:
    """The exit above `call`, in a loop round it, that is taken by something which the round itself has made."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)):
            own = _own_names(up)
            for statement in up.body:
                if statement is below:
                    break
                if (skip := _skip_in(statement, own)) is not None:
                    return skip
        below = up
    return None


def _skip_in(statement: ast.stmt, own: frozenset[str]) -> ast.stmt | None:
    if not isinstance(statement, ast.If) or not any(n.id in own for n in walk(statement.test) if isinstance(n, ast.Name)):
        return None
    ends = (arm[-1] for arm in (statement.body, statement.orelse) if arm)
    return next((end for end in ends if isinstance(end, (ast.Continue, ast.Break))), None)


def _own_names(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """What the rounds bind, without the number of the round, which is the same on all ranks."""
    targets = [] if isinstance(loop, ast.While) else [*_without_counter(loop)]
    bound = {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)}
    for statement in loop.body:
        bound |= {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(bound) - _counted(loop)


def _without_counter(loop: ast.For | ast.AsyncFor) -> Iterator[ast.expr]:
    name = last(dotted(loop.iter.func)) if isinstance(loop.iter, ast.Call) else ""
    if name not in _COUNTERS:
        yield loop.target
    elif isinstance(loop.target, ast.Tuple):
        yield from loop.target.elts[1:]


def _counted(loop: ast.AST) -> frozenset[str]:
    """Names that the rounds count up by a fixed number: `step += 1`."""
    added = (n for n in walk(loop) if isinstance(n, ast.AugAssign) and isinstance(n.value, ast.Constant))
    return frozenset(dotted(n.target) for n in added)
