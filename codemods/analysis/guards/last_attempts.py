"""Attempts with which a program ends: the last statement of the function that its main block calls."""

from __future__ import annotations

import ast

from codemods.analysis.conditions import is_main_block
from codemods.analysis.names import dotted
from codemods.analysis.variance.state import Meeting
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def waited_for_at_the_end(project: Project, module: SourceModule, attempt: ast.Try, met: list[Meeting]) -> Meeting | None:
    """What the ranks wait in, where the attempt goes through items and is the last thing that the program does.

    met: what the attempt comes to. One meeting is enough here: behind the handler the process ends with status 0.
    """
    if not _ends_the_program(module, attempt):
        return None
    return next((m for m in met if not m.maybe and _is_of_work(project, m)), None)


def _is_of_work(project: Project, meeting: Meeting) -> bool:
    """True where the function that the attempt calls has a loop: it goes through something, and is no tear-down."""
    if len(meeting.steps) < 2:
        return False
    inner = meeting.steps[1]
    called = project.module(inner.path)
    if called is None:
        return False
    around = [f for f in called.functions if f.lineno <= inner.line <= (f.end_lineno or 0)]
    return any(isinstance(n, _LOOPS) for n in walk(around[-1])) if around else False


def _ends_the_program(module: SourceModule, attempt: ast.Try) -> bool:
    if attempt.finalbody or attempt.orelse:
        return False
    function = module.function_of(attempt)
    if function is None:
        return _is_last_of_the_program(module, attempt)
    if function.body[-1] is not attempt:
        return False
    calls = [c for c in module.calls_named(function.name) if dotted(c.func) == function.name and module.function_of(c) is None]
    statements = (module.statement_of(c) for c in calls)
    return any(isinstance(s, ast.Expr) and _is_last_of_the_program(module, s) for s in statements)


def _is_last_of_the_program(module: SourceModule, statement: ast.stmt) -> bool:
    """True for the last statement of the file, or of a main block with which it ends."""
    last = module.tree.body[-1]
    return last is statement or (isinstance(last, ast.If) and is_main_block(last) and last.body[-1] is statement)
