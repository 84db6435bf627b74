"""The forms in which ranks part, and the record of one place where they do."""

from __future__ import annotations

import ast
from enum import Enum

from codemods.analysis.variance.state import Meeting
from codemods.analysis.variance.values import Value
from codemods.runtime.record import record


class Form(Enum):
    """How they part."""

    DECIDES = "decides"  # a test decides whether a collective is met
    LEAVES = "leaves"  # an exit passes by a collective that the others come to
    ENDS = "ends"  # the process ends by its own data
    FAILS = "fails"  # it raises by its own data: most launchers end the others
    ROUNDS = "rounds"  # how often a loop with a collective runs
    NO_LOSS = "no loss"  # a training_step that gives none
    PLATEAU = "plateau"  # a scheduler is told a rank's own number
    RATE = "rate"  # a learning rate is set by a rank's own number
    STOPS = "stops"  # the framework is told to stop, by what is one rank's own
    RAISES = "raises"  # an exception leads past a collective, and is swallowed
    WAITS = "waits"  # a handler waits for ranks that had no exception


@record
class Mismatch:
    """node: the statement that decides. value: what it decides by, callers included. meeting: what only some ranks come to.

    leaving: the statement that leaves, for LEAVES, ENDS and FAILS.
    """

    form: Form
    node: ast.stmt | ast.ExceptHandler
    value: Value
    meeting: Meeting | None
    leaving: ast.stmt | None = None
