"""Places that no run reaches, or that no run gets past, since a statement fails in every run.

It reads what does not exist (a lost option, a forgotten import, an attribute that nothing sets), or calls a function of the
project with arguments that it does not take: `failing_statements`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, subclasses
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import position
from codemods.analysis.ranks.failing_statements import (
    TRAINS,
    Places,
    certain,
    constructor_dies,
    evaluated,
    expression_fails,
    failing,
    is_whole,
)
from codemods.analysis.ranks.refused_calls import is_refused
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.files.text_file import NOTEBOOK
from codemods.store.project import Project

_OF_THE_CLASS = frozenset({"staticmethod", "classmethod"})
_CLIMBS = 3  # callers above the place


def is_behind_a_failure(project: Project, module: SourceModule, node: ast.AST, at: Places | None = None) -> bool:
    """True where a statement above `node`, or the head of one round it, fails in every run that comes there.

    Also for a call that is refused: what it would run is not run.
    at: where expressions raise, if others have found that; else what the source shows.
    """
    if module.path.endswith(NOTEBOOK):
        return False
    if isinstance(node, ast.Call) and is_refused(project, module, node):
        return True
    below: ast.AST = node
    for up in module.ancestors(node):
        place = position(module, below)
        if isinstance(up, ast.Call) and up.func is below and is_refused(project, module, up):
            return True
        if place is not None and any(expression_fails(project, module, part, at=at) for part in _head(module, up, place.name)):
            return True
        if place is not None and any(i < place.index for i in failing(project, module, place.block, at)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _is_of_unmade(project, module, up, at)
        below = up
    return False


def is_in_a_failing_block(
    project: Project, module: SourceModule, node: ast.AST, climbs: int = _CLIMBS, at: Places | None = None
) -> bool:
    """True where a block round `node`, or round each call of its function, fails in every run, above or below it."""
    if module.path.endswith(NOTEBOOK):
        return False
    below: ast.AST = node
    for up in module.ancestors(node):
        place = position(module, below)
        if place is not None and _dies(project, module, place.block, place.index, at):
            return True
        if isinstance(up, (ast.Try, ast.TryStar)):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _is_of_unmade(project, module, up, at) or _is_called_in_failing_blocks(project, module, up, climbs, at)
        below = up
    return False


def _is_called_in_failing_blocks(
    project: Project, module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef, climbs: int, at: Places | None
) -> bool:
    if not climbs or function.decorator_list or _trains(project, module, function):
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not used.calls:
        return False
    return all(is_in_a_failing_block(project, s.module, s.call, climbs - 1, at) for s in used.calls)


def _trains(project: Project, module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    key = ("function that trains", module.path, function.lineno)
    return project.keep(key, lambda: TRAINS.search(module.text_of(function)) is not None)


def _is_of_unmade(
    project: Project, module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef, at: Places | None
) -> bool:
    """True for a method of an object that no run gets made: its constructor dies, and each heir has it from there."""
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef) or function.name.startswith("__"):
        return False
    if _OF_THE_CLASS & {last(dotted(d)) for d in function.decorator_list}:
        return False
    if not constructor_dies(project, ClassSite(module, owner), at):
        return False
    return not any("__init__" in s.methods() for s in subclasses(project, ClassSite(module, owner)))


def _dies(project: Project, module: SourceModule, block: list[ast.stmt], index: int, at: Places | None) -> bool:
    """True where another statement of the block fails in every run, and no training lies between: it would print for hours.

    at: also the statement itself, which may be a loop round both.
    """
    for i in failing(project, module, block, at):
        between = block[index : i if i != index else i + 1]
        if (at is not None or i != index) and not any(TRAINS.search(module.text_of(s)) for s in between):
            return True
    return False


def _head(module: SourceModule, statement: ast.AST, block: str) -> Iterator[ast.expr]:
    """What has been worked out before a block of the statement is run; what a short sample loops over may come from elsewhere."""
    if isinstance(statement, (ast.If, ast.While)):
        yield from _asked(statement.test, whole=block == "body")
    elif isinstance(statement, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)) and is_whole(module):
        yield from evaluated(statement)


def _asked(test: ast.expr, *, whole: bool) -> Iterator[ast.expr]:
    """What a test has read where it has come out. whole: it came out true, so that each part of an `and` was read."""
    if whole and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _asked(part, whole=True)
    else:
        yield from certain(test)
