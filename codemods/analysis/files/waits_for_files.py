"""Does a function wait for the other ranks so that a file that it makes sure of is there, or for something else?

A function that trains waits at many places. Those count that stand between the making and the reading, and those above the
test for the file behind something that some ranks do alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_flow import Step, steps_in
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_BRINGS = lazy(r"download|prepare|preprocess|build|fetch|hub|[dD]ata|cache|make_|generate|load|save|write|create")


def waits_for_it(project: Project, module: SourceModule, function: FunctionNode, test: ast.If, read: Step) -> bool:
    """True where the ranks meet above the test, behind what some do alone, or between the test and who reads the file."""
    if any(s.act is None for s in steps_in(project, module, list(_entered(module, function, test)))):
        return True
    some = False
    for statement in sorted(_above(module, function, test), key=line_of):
        some = some or _is_left_to_some(module, statement)
        waits = [s for s in steps_in(project, module, [statement]) if s.act is None]
        if any(s.ranks is not Ranks.ALL for s in waits) or (waits and some):
            return True
    return any(s.act is None for s in steps_in(project, module, list(_behind(module, function, test, read))))


def _above(module: SourceModule, function: FunctionNode, test: ast.If) -> Iterator[ast.stmt]:
    """The statements that have run when the test is made, as far as they stand in the blocks round it."""
    below: ast.AST = test
    for up in module.ancestors(test):
        yield from above(module, below)
        if up is function:
            return
        below = up


def _entered(module: SourceModule, function: FunctionNode, test: ast.If) -> Iterator[ast.expr]:
    """The contexts round the test, a lock for example."""
    for up in module.ancestors(test):
        if isinstance(up, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in up.items)
        if up is function:
            return


def _behind(module: SourceModule, function: FunctionNode, test: ast.If, read: Step) -> Iterator[ast.stmt]:
    """What stands behind the test, to where the file is read; all of it where somebody else reads it."""
    first, end = test.end_lineno or test.lineno, function.end_lineno or 0
    line = line_of(read.call)
    inside = read.module is module and function.lineno <= line <= end
    if inside and line <= first:
        return
    for statement in behind(module, test):
        yield statement
        if inside and line <= (statement.end_lineno or statement.lineno):
            return


def _is_left_to_some(module: SourceModule, statement: ast.stmt) -> bool:
    tests = [n for n in walk(statement) if isinstance(n, ast.If) and names_rank(module.text_of(n.test))]
    return any(_BRINGS.search(module.text_of(s)) for n in tests for s in (*n.body, *n.orelse))
