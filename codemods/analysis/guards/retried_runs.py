"""Handlers that call the whole work of a rank once more, which starts the process group a second time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_ERRORS = frozenset({"OutOfMemoryError", "RuntimeError", "Exception", "BaseException"})
_TAKES_DOWN = ("destroy_process_group", "cleanup", "clean_up", "teardown", "shutdown")
_DEPTH = 2  # functions between the work and the start of the group


@record
class Retried:
    """handler: what takes the error; again: the second call; module, start: where the group is started in it."""

    handler: ast.ExceptHandler
    again: ast.Call
    module: SourceModule
    start: ast.Call


def retried_runs(project: Project, module: SourceModule) -> Iterator[Retried]:
    """`try: train(…)` with `except OutOfMemoryError: train(…)`, where `train` starts the group in any case."""
    for attempt in module.nodes(ast.Try):
        first = {dotted(c.func) for s in attempt.body for c in walk(s) if isinstance(c, ast.Call)}
        for handler in attempt.handlers:
            text = module.text_of(handler)
            if not _is_of_one_rank(handler) or any(word in text for word in _TAKES_DOWN):
                continue
            for call in (c for s in handler.body for c in walk(s) if isinstance(c, ast.Call)):
                site = called_function(project, module, call) if dotted(call.func) in first else None
                start = _start_in(project, site, 0) if site is not None else None
                if start is not None:
                    yield Retried(handler, call, *start)
                    break


def _is_of_one_rank(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(k is None or last(dotted(k)) in _ERRORS for k in kinds)


def _start_in(project: Project, site: FunctionSite, depth: int) -> tuple[SourceModule, ast.Call] | None:
    """The `init_process_group` that the function comes to, where it neither asks for a group nor takes it down."""
    module, function = site.module, site.node
    text = module.text_of(function)
    if "is_initialized" in text or any(word in text for word in _TAKES_DOWN if "finally" in text):
        return None
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        if last(qualified(module, call.func)) == "init_process_group":
            return None if _is_tried(module, call) else (module, call)
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)) if depth < _DEPTH else ():
        below = called_function(project, module, call) if not _is_tried(module, call) else None
        if below is not None and below.node is not function and (found := _start_in(project, below, depth + 1)) is not None:
            return found
    return None


def _is_tried(module: SourceModule, call: ast.Call) -> bool:
    return any(isinstance(up, ast.Try) for up in module.ancestors(call))
