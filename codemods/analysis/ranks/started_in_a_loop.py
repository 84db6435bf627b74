"""Ranks that a loop numbers which starts all of them: `for rank in range(n): Process(target=run, args=(rank, n)).start()`."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, end_of, last
from codemods.analysis.ranks.values_behind import Value, values_behind
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_started_in_one_loop(project: Project, module: SourceModule, index: ast.expr, size: ast.expr) -> bool:
    """True where each rank is the number of a round of a loop that starts a process in each, and the size counts its rounds.

    All processes are children of one then, and run on its machine.
    """
    numbers = values_behind(project, module, index)
    sizes = {ast.unparse(v.node) for v in values_behind(project, module, size)}
    return bool(numbers) and all(_counts(project, v) == sizes for v in numbers)


def _counts(project: Project, number: Value) -> set[str]:
    """What the loop counts that binds a number, as far as a process is started with it there."""
    node, module = number.node, number.module
    if not isinstance(node, ast.Name) or not _is_given_to_a_process(module, node):
        return set()
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.For) and isinstance(up.target, ast.Name) and up.target.id == node.id:
            rounds = up.iter
            if isinstance(rounds, ast.Call) and dotted(rounds.func) == "range" and len(rounds.args) == 1:
                return {ast.unparse(v.node) for v in values_behind(project, module, rounds.args[0])}
    return set()


def _is_given_to_a_process(module: SourceModule, node: ast.Name) -> bool:
    calls = (up for up in module.ancestors(node) if isinstance(up, ast.Call))
    return any((last(dotted(call.func)) or end_of(call.func)) == "Process" for call in calls)
