"""Dicts of numbers for a log, of which some are gathered over the ranks, and others are the rank's own.

`metrics["reward"] = gathered_reward.mean()` shows that the numbers have to be gathered, and
`metrics["loss"] = loss.mean()` below is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.wrong import joins_ranks
from codemods.analysis.bindings import bindings_in
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_words import names_metric
from codemods.analysis.variance.values import Cause
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Mixed:
    """own: the first entry that is the rank's own, and others: how many more are. gathered: one that is not."""

    own: ast.Assign
    others: int
    gathered: ast.Assign


def mixed_entries(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[Mixed]:
    """One for each dict that a method fills and hands on as it is."""
    by_name: dict[str, list[ast.Assign]] = {}
    for node in walk_scope(function):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            by_name.setdefault(target.value.id, []).append(node)
    for name, entries in by_name.items():
        gathered = [e for e in entries if _is_gathered(project, module, function, e)]
        if not gathered or not _starts_empty(module, function, name) or _is_joined(project, function, name):
            continue
        own = [e for e in entries if _is_own(project, module, e)]
        if own:
            yield Mixed(own[0], len(own) - 1, gathered[0])


def _starts_empty(module: SourceModule, function: FunctionNode, name: str) -> bool:
    values = [b.value for b in bindings_in(module, function, name)]
    return bool(values) and all(isinstance(v, ast.Dict) and not v.keys for v in values)


def _is_joined(project: Project, function: FunctionNode, name: str) -> bool:
    calls = (n for n in walk(function) if isinstance(n, ast.Call) and joins_ranks(project, n))
    return any(isinstance(n, ast.Name) and n.id == name for c in calls for n in walk(c))


def _is_gathered(project: Project, module: SourceModule, function: FunctionNode, entry: ast.Assign) -> bool:
    """True where the value, or a name in it by its last assignment, is what a call brings together from all ranks."""
    value = variance(project).value(module, entry.value)
    if value.differs or value.cause is not Cause.SAME:
        return False
    parts = list(walk(entry.value))
    for name in (n for n in walk(entry.value) if isinstance(n, ast.Name)):
        above = [b for b in bindings_in(module, function, name.id) if stands_above(b.node, entry) and b.value is not None]
        if above:
            last = max(above, key=lambda b: getattr(b.node, "lineno", 0))
            parts += walk(last.value) if last.value is not None else []
    return any(isinstance(n, ast.Call) and joins_ranks(project, n) for n in parts)


def _is_own(project: Project, module: SourceModule, entry: ast.Assign) -> bool:
    target = entry.targets[0]
    if not isinstance(target, ast.Subscript) or not names_metric(target.slice):
        return False
    return variance(project).value(module, entry.value).is_of_own_data
