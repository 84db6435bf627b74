"""Numbers that rank 0 has put into a file before the other ranks come: what is there is read, and nobody numbers anew.

`if exists(path): return read(path)` above `numbers = number(names); write(path, numbers)`, in a function that rank 0 calls before
a barrier and all ranks behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.asked_paths import asked
from codemods.analysis.files.file_calls import CHANGES, file_call
from codemods.analysis.files.let_in_first import first_of_zero
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_UP = 2


def is_kept_by_the_first(project: Project, module: SourceModule, node: ast.AST, up: int = _UP) -> bool:
    """True where `node`, or each call of its function, stands in such a place."""
    if not first_of_zero(project):
        return False
    function = module.function_of(node)
    if function is None:
        return False
    if function.name in first_of_zero(project) and _is_made_where_missing(project, module, node):
        return True
    calls = calls_of(project, module, function) if up else None
    return bool(calls) and all(is_kept_by_the_first(project, s.module, s.call, up - 1) for s in calls or ())


def _is_made_where_missing(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True below a test for a file that leaves where it is there, or in the arm without it; it is written behind that."""
    written = {text for s in _behind(module, node) for text in _changed(module, s)}
    tests = _tests(module, node)
    return any(_text(module, call.path) in written for test in tests for call in asked(project, module, test))


def _text(module: SourceModule, path: ast.expr) -> str:
    """A path as it is written, without the `Path(…)` or `str(…)` round it."""
    while isinstance(path, ast.Call) and last(dotted(path.func)) in ("Path", "str") and len(path.args) == 1:
        path = path.args[0]
    return module.text_of(path)


def _changed(module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    """The paths that a statement writes, and what it hands to a function that gives nothing back."""
    for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
        if (found := file_call(module, call)) is not None and found.act in CHANGES:
            yield _text(module, found.path)
        elif isinstance(module.parent(call), ast.Expr):
            yield from (_text(module, a) for a in (*call.args, *(k.value for k in call.keywords)))


def _tests(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round the place, and those above it whose arm leaves the function."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and below is not up.test:
            yield up.test
        for body in (getattr(up, "body", None), getattr(up, "orelse", None)):
            if isinstance(body, list) and any(s is below for s in body):
                above = body[: next(i for i, s in enumerate(body) if s is below)]
                yield from (s.test for s in above if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Return))
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _behind(module: SourceModule, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements that follow the one of `node` in its block, and in those round it."""
    below: ast.AST = node
    for up in module.ancestors(node):
        for body in (getattr(up, "body", None), getattr(up, "orelse", None)):
            if isinstance(body, list) and any(s is below for s in body):
                yield from body[next(i for i, s in enumerate(body) if s is below) + 1 :]
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up
