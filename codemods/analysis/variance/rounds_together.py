"""Loops in which the ranks meet: a rank with more rounds waits there, so behind the loop all that came through counted alike.

How often such a loop runs may differ, which is told at the loop. What it counts (`step += 1`) differs on no way that goes on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableSequence
from typing import Any

from codemods.analysis.loading.evened_rounds import is_joined
from codemods.analysis.variance.state import STEP, State
from codemods.analysis.variance.values import Value
from codemods.files.source import walk_block
from codemods.runtime.record import record


@record
class Mark:
    """What an interpretation held where a loop begins."""

    env: dict[str, Value]
    sets: dict[str, Value]
    begun: dict[str, tuple[Value, ...]]
    lengths: tuple[int, ...]


def mark(state: State) -> Mark:
    return Mark(dict(state.env), dict(state.sets), dict(state.begun), tuple(len(held) for held in _lists(state)))


def go_back(state: State, to: Mark) -> None:
    """Forget what a reading of the loop left: it is read again, knowing more."""
    state.env, state.sets, state.begun = dict(to.env), dict(to.sets), dict(to.begun)
    for held, length in zip(_lists(state), to.lengths, strict=True):
        del held[length:]


def _lists(state: State) -> tuple[MutableSequence[Any], ...]:
    """What a reading adds to: only cut back here, whatever stands in it."""
    return state.returns, state.counted, state.told, state.stops


def meet_each_round(state: State, loop: ast.For | ast.AsyncFor) -> bool:
    """True where a round comes to a collective, and no rank passes it by on its own; under `Join` ranks go on without others."""
    return not is_joined(state.module, loop) and any(_all_come(state, loop, call) for call in _meeting_calls(state, loop))


def _meeting_calls(state: State, loop: ast.For | ast.AsyncFor) -> Iterator[ast.AST]:
    for node in walk_block(loop.body):
        met = state.met.get(id(node), ())
        if any(m.name != STEP and m.must and not m.maybe and not m.needs for m in met):
            yield node


def _all_come(state: State, loop: ast.For | ast.AsyncFor, call: ast.AST) -> bool:
    """False under a test that differs between the ranks."""
    for up in state.module.ancestors(call):
        if up is loop:
            return True
        test = up.test if isinstance(up, (ast.If, ast.IfExp, ast.While)) else None
        if test is not None and (known := state.tests.get(id(test))) is not None and known.cause.differs:
            return False
    return False
