"""Scores that are put into a logger of meters, once for the share of a rank, and that the logger adds up over the ranks.

`metric_logger.update(bleu=bleu)` behind the loop over the batches, and `metric_logger.synchronize_between_processes()` below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk_scope
from codemods.store.project import Project

SYNCHRONIZES = "synchronize_between_processes"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def metered(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr]]:
    """(the call that brings the meters of the ranks together, a score that was put into one of them)."""
    if not module.holds(SYNCHRONIZES.encode()) or not _adds_up(project):
        return
    for call in module.calls_named(SYNCHRONIZES):
        function = module.function_of(call)
        holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if function is not None and holder:
            yield from ((call, given) for given in _put_in(module, function, call, holder))


def _adds_up(project: Project) -> bool:
    """True where the project's own meters add up counts and totals over the ranks."""

    def build() -> bool:
        paths = project.files_containing(f"def {SYNCHRONIZES}".encode())
        return any(b"all_reduce(" in (project.read(p) or b"") for p in paths)

    return project.keep("meters are added up", build)


def _put_in(module: SourceModule, function: FunctionNode, synchronized: ast.Call, holder: str) -> Iterator[ast.expr]:
    """What is put into the meters of a logger in the function, once: not for each batch."""
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "update" or not stands_above(call, synchronized):
            continue
        if any(isinstance(up, _LOOPS) for up in module.ancestors(call)):
            continue
        into = call.func.value
        if isinstance(into, ast.Subscript) and dotted(into.value) == f"{holder}.meters":
            yield from call.args[:1]
        elif dotted(into) == holder:
            yield from (k.value for k in call.keywords if k.arg)
