"""Data sets whose `__getitem__` raises StopIteration where a sample fails: the loop over the loader ends on that rank alone.

Seen with torch 2.13: the loader hands the exception on as its own, from its worker too, and a `for` takes it for the end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.handlers import handler_over
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_CATCHES = frozenset({"StopIteration", "Exception", "BaseException"})


@record
class EarlyEnd:
    """at: it raises. failed: the handler of the samples that fail. owner: the class of the data set."""

    at: ast.Raise
    failed: ast.ExceptHandler
    owner: str


def early_ends(project: Project, module: SourceModule) -> Iterator[EarlyEnd]:
    if not module.holds(b"StopIteration"):
        return
    for node in module.nodes(ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        place = module.method_of(node)
        if raised is None or dotted(raised) != "StopIteration" or place is None:
            continue
        owner, method = place
        if not _gives_an_item(owner, method) or not _is_map_style(project, module, owner) or handler_over(module, node, _CATCHES):
            continue
        failed = _failed_sample(module, node, method)
        if failed is not None and is_of_several(project, module, node):
            yield EarlyEnd(node, failed, owner.name)


def _gives_an_item(owner: ast.ClassDef, method: FunctionNode) -> bool:
    """True for `__getitem__`, and for a method that it calls."""
    if method.name == "__getitem__":
        return True
    item = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__getitem__"), None)
    calls = (n for n in ast.walk(item) if isinstance(n, ast.Call)) if item is not None else ()
    return any(dotted(c.func) == f"self.{method.name}" for c in calls)


def _is_map_style(project: Project, module: SourceModule, owner: ast.ClassDef) -> bool:
    """True for a data set that a loader asks by its indices, whatever `__iter__` it has for others."""
    facts = class_facts(project, module, owner)
    if facts.unresolved or facts.method("__next__") is not None:
        return False
    names = {last(name) for name in facts.external}
    return "Dataset" in names and "IterableDataset" not in names


def _failed_sample(module: SourceModule, node: ast.Raise, method: FunctionNode) -> ast.ExceptHandler | None:
    """The handler that the line stands in, or that of the tries which a loop round it counts."""
    for up in module.ancestors(node):
        if up is method:
            return None
        if isinstance(up, ast.ExceptHandler):
            return up
        if isinstance(up, (ast.While, ast.For)):
            return next((t.handlers[0] for t in up.body if isinstance(t, ast.Try) and t.handlers), None)
    return None
