"""An optimizer that each rank restores from a file of its own, in a `try` that swallows what goes wrong on one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.handlers import takes
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.analysis.wrapped.training_state import kind_of
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_BROAD = frozenset({"Exception", "BaseException", "FileNotFoundError", "OSError", "IOError", "RuntimeError"})


def restored_from_own_files(project: Project, module: SourceModule) -> Iterator[ast.Call]:
    """The `load_state_dict` calls of that kind."""
    for attempt in module.nodes(ast.Try):
        if not attempt.handlers or not all(_swallows(h) for h in attempt.handlers) or _meets(module, attempt, project):
            continue
        for call in (n for statement in attempt.body for n in walk(statement)):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "load_state_dict":
                continue
            if kind_of(module, call.func.value) is not None and _from_own_file(project, module, attempt):
                yield call


def _swallows(handler: ast.ExceptHandler) -> bool:
    ends = (n for s in handler.body for n in walk(s) if isinstance(n, (ast.Raise, ast.Return)) or _leaves(n))
    return takes(handler, _BROAD) and next(ends, None) is None


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last(dotted(node.func)) in ("exit", "_exit", "abort", "destroy_process_group")


def _from_own_file(project: Project, module: SourceModule, attempt: ast.Try) -> bool:
    for node in (n for statement in attempt.body for n in walk(statement)):
        if isinstance(node, ast.Call) and last(dotted(node.func)) == "load" and node.args:
            found = variance(project).argument(module, node, 0)
            if found.differs and found.cause is Cause.RANK:
                return True
    return False


def _meets(module: SourceModule, attempt: ast.Try, project: Project) -> bool:
    """True where a collective stands further down: the ranks may agree there on whether all of them could."""
    function = module.function_of(attempt)
    return any(
        c.lineno > attempt.lineno and module.function_of(c) is function and collective_at(module, c, project=project) is not None
        for c in module.nodes(ast.Call)
    )
