"""Waits under a test for a path that rank 0 makes or removes meanwhile: a rank that asks later gets another answer.

`if os.path.exists(d):`, in it `shutil.rmtree(d)` on rank 0 and a barrier: a slower rank no longer finds the folder, and does not
come to the barrier. What takes long to make is left alone: the others have asked by then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.asked_paths import asked
from codemods.analysis.files.every_rank import way_of_every_rank
from codemods.analysis.files.file_calls import Act, FileCall
from codemods.analysis.files.file_flow import Step, steps_in
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.own_paths import is_own_path
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_AT_ONCE = {True: Act.REMOVES, False: Act.MAKES}  # whether the arm is that of a path which is there


@record
class AskedMeanwhile:
    """asked: the test for the path. change: what rank 0 does to it. wait: where it waits for the others then."""

    test: ast.If
    asked: FileCall
    change: Step
    wait: Step


def asked_meanwhile(project: Project, module: SourceModule) -> Iterator[AskedMeanwhile]:
    """One for each test of the file that every rank comes to."""
    for test in module.nodes(ast.If):
        if module.function_of(test) is None or not module.is_whole(test):
            continue
        for question in asked(project, module, test.test):
            found = _found(project, module, test, question)
            if found is not None:
                yield found
                break


def _found(project: Project, module: SourceModule, test: ast.If, question: FileCall) -> AskedMeanwhile | None:
    simple = test.test is question.call
    negated = isinstance(test.test, ast.UnaryOp) and isinstance(test.test.op, ast.Not) and test.test.operand is question.call
    if not simple and not negated:
        return None  # what else is asked may be known to one rank alone
    steps = list(steps_in(project, module, test.body))
    at = next((i for i, s in enumerate(steps) if s.act is None or _changes(module, s, question, simple)), None)
    if at is None or steps[at].act is None:
        return None  # they wait first: all have asked before it is changed
    wait = next((s for s in steps[at + 1 :] if s.act is None and s.ranks is Ranks.ALL), None)
    if wait is None or any(s.act is None for s in steps_in(project, module, test.orelse)):
        return None
    if is_own_path(project, module, question.path, whole=False) or way_of_every_rank(project, module, test, loose=True) is None:
        return None
    return AskedMeanwhile(test, question, steps[at], wait)


def _changes(module: SourceModule, step: Step, question: FileCall, there: bool) -> bool:
    """True for what rank 0 alone does to the very path, at once, above the first wait."""
    return step.act is _AT_ONCE[there] and step.ranks is Ranks.ZERO and bool(step.forms & forms(module, question.path))

