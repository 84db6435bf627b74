"""What code does besides computing: output, collectives, state that others read, random numbers, calls nobody knows.

Followed through the project's own functions and methods. A callee that is neither there nor in `data/host_only.py` is
unknown and named; a call that stands under a rank guard counts as guarded, and so does everything below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.output.effect_kinds import OUTPUT, Effect, Effects, Kind, names_rank, phrases
from codemods.analysis.output.effect_reader import Reader, read_function
from codemods.files.source import FunctionNode, SourceModule, child_nodes
from codemods.runtime.record import record
from codemods.store.project import Project

__all__ = [
    "OUTPUT", "Effect", "Effects", "Kind", "does_nothing", "effects_of", "effects_of_function", "names_rank", "only_output_of",
    "phrases",
]  # fmt: skip

_NEVER_OUTPUT = (ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


def effects_of_function(project: Project, module: SourceModule, function: FunctionNode) -> Effects:
    """What calling `function` does, remembered for the project. A function that calls itself adds nothing to itself."""
    return read_function(project, module, function, ())


def effects_of(project: Project, module: SourceModule, nodes: Iterable[ast.AST]) -> Effects:
    """What running these statements or expressions does."""
    return Reader(project, module, ()).read(nodes)


def only_output_of(project: Project, module: SourceModule, statement: ast.stmt) -> Effects | None:
    """What the statement does, if that is output and nothing else; the reading ends at the first thing that is not."""
    shown = _shown_by(project, module, statement)
    if shown.spoiled or not shown.may_put_out or _calls_more(project, module, statement):
        return None
    found = Reader(project, module, (), quick=True).read([statement])
    return found if found.only_output else None


@record
class _Shown:
    """What a statement shows without what it calls. may_put_out: it does, or calls something for nothing, or for the time of a
    block, that may.
    """

    spoiled: bool
    may_put_out: bool


def _shown_by(project: Project, module: SourceModule, statement: ast.stmt) -> _Shown:
    """Each statement is asked once, however deep it stands."""
    key = ("shown by", module.path, statement.lineno, statement.col_offset)
    return project.keep(key, lambda: _find_shown(project, module, statement))


def _find_shown(project: Project, module: SourceModule, statement: ast.stmt) -> _Shown:
    for later in reversed(_elifs(statement)):  # from the last on: a chain may be longer than calls may be deep
        _shown_by(project, module, later)
    own, below = _parts(statement)
    reader = Reader(project, module, (), quick=True)
    if any(isinstance(n, _NEVER_OUTPUT) for n in own) or reader.is_spoiled_by(own, following=False):
        return _Shown(True, False)
    idle = isinstance(statement, (ast.Expr, ast.With)) and any(isinstance(n, ast.Call) for n in own)  # also `x and print(x)`
    may_put_out = reader.puts_out or idle
    for inner in below:
        shown = _shown_by(project, module, inner)
        if shown.spoiled:
            return shown
        may_put_out = may_put_out or shown.may_put_out
    return _Shown(False, may_put_out)


def _elifs(statement: ast.stmt) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    while isinstance(statement, ast.If) and len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        statement = statement.orelse[0]
        found.append(statement)
    return found


def _calls_more(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True where what the statement calls does more than put something out."""
    key = ("calls more", module.path, statement.lineno, statement.col_offset)
    return project.keep(key, lambda: _find_more(project, module, statement))


def _find_more(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    own, below = _parts(statement)
    if any(_calls_more(project, module, inner) for inner in below):
        return True
    return Reader(project, module, (), quick=True).is_spoiled_by(own)


def _parts(statement: ast.stmt) -> tuple[list[ast.AST], list[ast.stmt]]:
    """(the nodes of a statement itself, the statements in its blocks), without functions and classes."""
    own: list[ast.AST] = []
    below: list[ast.stmt] = []
    stack: list[ast.AST] = [statement]
    while stack:
        top = stack.pop()
        if isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(top, ast.stmt) and top is not statement:
            below.append(top)
            continue
        own.append(top)
        if children := child_nodes(top):
            children.reverse()
            stack += children
    return own, below


def does_nothing(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for a statement that computes and no more."""
    return not Reader(project, module, (), quick=True).read([statement]).items
