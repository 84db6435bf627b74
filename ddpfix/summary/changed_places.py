"""The statements that a change touches, in the new text of its files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.store.project import Project

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OF_NO_RUN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def changed_statements(project: Project, path: str, before: bytes | None, after: bytes) -> list[tuple[SourceModule, ast.stmt]]:
    """The innermost statement at each stretch of changed lines; imports, and what only defines, are no place that is run.

    A function whose head is changed is run where its first statement is.

    project: with the new text. Nothing where the old text is not known, or is the new one.
    """
    module = project.module(path) if path.endswith(PYTHON_KINDS) and before is not None and before != after else None
    if before is None or not isinstance(module, SourceModule):
        return []
    at = (_run_with(s, line) for line in _lines(before, after) if (s := _at(module, line)) is not None)
    found = {id(s): s for s in at if not isinstance(s, _OF_NO_RUN)}
    return [(module, statement) for statement in found.values()]


def changes_imports_alone(project: Project, path: str, before: bytes | None, after: bytes) -> bool:
    """True where each changed line is of an import at the top of the file: to import the file is to run them all."""
    module = project.module(path) if path.endswith(PYTHON_KINDS) and before is not None else None
    if before is None or not isinstance(module, SourceModule):
        return False
    at = [_at(module, line) for line in _lines(before, after)]
    return bool(at) and all(isinstance(s, (ast.Import, ast.ImportFrom)) and module.parent(s) is module.tree for s in at)


def _lines(before: bytes, after: bytes) -> Iterator[int]:
    old, new = before.splitlines(), after.splitlines()
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (at + 1 for at in range(start, max(end, start + 1)) if at < len(new))


def _at(module: SourceModule, line: int) -> ast.stmt | None:
    every = (node for kind, nodes in module.buckets() if issubclass(kind, ast.stmt) for node in nodes)
    round_it = [s for s in every if isinstance(s, ast.stmt) and _start(s) <= line <= (s.end_lineno or s.lineno)]
    return max(round_it, key=lambda s: (s.lineno, -(s.end_lineno or s.lineno)), default=None)


def _start(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    return min((decorator.lineno for decorator in decorators), default=statement.lineno)


def _run_with(statement: ast.stmt, line: int) -> ast.stmt:
    is_head = isinstance(statement, _FUNCTIONS) and line < statement.body[0].lineno
    return statement.body[0] if is_head and isinstance(statement, _FUNCTIONS) else statement
