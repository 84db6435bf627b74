"""A rank that ends with an error by its own data, under a launcher that lets the others run on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_flow import ranks_in_function
from codemods.analysis.guards.reduced_tests import reduced_test
from codemods.analysis.handlers import tries_over
from codemods.analysis.job_files.lasting_commands import LastingStart
from codemods.analysis.ranks.lasting_starts import lasting_start
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.variance.exits import asks_number
from codemods.analysis.variance.partings import Form, Mismatch
from codemods.analysis.variance.values import Cause
from codemods.analysis.variance.wording import chain, head
from codemods.api.findings import Edit, Evidence
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project


def lasting(project: Project, module: SourceModule, found: Mismatch) -> LastingStart | None:
    """How the program is started so that the others outlive the rank that fails here; None where nothing shows it."""
    if found.value.cause is not Cause.DATA or not isinstance(found.node, ast.If) or not asks_number(found.node.test):
        return None
    if found.form is Form.FAILS and _is_caught(module, found.node):
        return None
    if ranks_in_function(project, module, found.node) is not Ranks.ALL:
        return None
    return lasting_start(project, module)


def _is_caught(module: SourceModule, node: ast.AST) -> bool:
    """True inside of a `try` of the function that catches anything."""
    return any(attempt.handlers for attempt in tries_over(module, node))


def words(module: SourceModule, found: Mismatch, start: LastingStart) -> str:
    """The message."""
    met = f"{found.meeting.text} (line {found.meeting.steps[0].line})" if found.meeting is not None else "the next collective"
    return (
        f"each rank's own data decide over `{head(module, found.node)}`, and {start.launcher} does not end the others when one "
        f"rank fails here: they wait in {met} until the time-out"
    )


def shown(found: Mismatch, start: LastingStart) -> Iterator[Evidence]:
    yield start.evidence
    yield from chain(found)


def repair(module: SourceModule, found: Mismatch, start: LastingStart) -> tuple[list[Edit], str]:
    """The test reduced over the ranks, in a loop that goes on to a backward pass; else what to write."""
    assert isinstance(found.node, ast.If)
    edits: list[Edit] = []
    reason = ""
    if found.leaving is not None and _backward_below(module, found.node):
        edits, reason = reduced_test(module, found.leaving, found.node, found.node.test)
    if edits:
        return edits, reason
    return [], f"let all ranks end with it (an all_reduce with MAX of 0 or 1 before the test), or {start.cure}"


def _backward_below(module: SourceModule, node: ast.stmt) -> bool:
    loop = next((up for up in module.ancestors(node) if isinstance(up, (ast.For, ast.While))), None)
    calls = (n for n in walk(loop) if isinstance(n, ast.Call)) if loop is not None else ()
    return any(c.lineno > node.lineno and (_end(c) == "backward" or "scaler" in _end(c)) for c in calls)


def _end(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
