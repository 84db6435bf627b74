"""Prints that stand one under the other are read as one message: a heading with its lines, a banner, a list of settings.

Where one line of it stays on every rank, a guard round the others tears it apart: the other ranks show lines without their
heading.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.names import qualified
from codemods.analysis.output.effects import effects_of
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.own_lines import Own, own_line
from codemods.analysis.output.print_in_scope import PRINTS, goes_to_terminal
from codemods.analysis.positions import above, behind
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def lines_beside(module: SourceModule, run: Run) -> Iterator[ast.stmt]:
    """The other lines of the message that a run is part of; for a run in a loop of prints, those round the loop too."""
    yield from _neighbours(module, run.first, run.last)
    loop = module.parent(run.first)
    while isinstance(loop, ast.For) and is_line(module, loop):
        yield from _neighbours(module, loop, loop)
        loop = module.parent(loop)


def _neighbours(module: SourceModule, first: ast.stmt, last_one: ast.stmt) -> Iterator[ast.stmt]:
    yield from _as_long_as_lines(module, reversed(above(module, first)))
    yield from _as_long_as_lines(module, behind(module, last_one))


def _as_long_as_lines(module: SourceModule, statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        if not is_line(module, statement):
            return
        yield statement


def is_line(module: SourceModule, statement: ast.stmt) -> bool:
    """True for a print to the terminal, and for a loop that does nothing but print."""
    if isinstance(statement, ast.For):
        return not statement.orelse and all(is_line(module, s) for s in statement.body)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and qualified(module, call.func) in PRINTS and goes_to_terminal(call)


def belongs_to_each_rank(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, lines: Sequence[ast.stmt]
) -> bool:
    """True where one of the lines shows what a rank has for itself, or what has to be worked out on every rank."""
    return any(
        own_line(project, module, function, [line]).own is Own.RESULT
        or bool(effects_of(project, module, [line]).besides())
        or any(isinstance(n, ast.NamedExpr) for n in walk(line))
        for line in lines
    )
