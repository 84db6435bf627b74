"""Lines beside a file that every rank writes: the file is the error there, and a guard round the line alone would hide it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import called_function
from codemods.analysis.output.effects import Effect, Kind, effects_of
from codemods.analysis.output.output_runs import Run, makes_folder
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.project import Project
from codemods.source import SourceModule, walk

_NEAR = 3  # statements between the line and what it speaks of
_LONGEST = 60  # lines of a function that does nothing but write: a whole training writes somewhere, too


def stands_beside_files(project: Project, module: SourceModule, run: Run) -> bool:
    """True where a statement near by, in the same block, writes a file on every rank."""
    block = module.block_of(run.first)
    places = [i for i, s in enumerate(block) if s is run.first or s is run.last]
    beside = block[max(places[0] - _NEAR, 0) : places[0]] + block[places[-1] + 1 : places[-1] + 1 + _NEAR]
    return any(_writes(project, module, statement) for statement in beside)


def _writes(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    if makes_folder(module, statement) or ranks_at(module, statement, project=project).some:
        return False
    written = [e for e in effects_of(project, module, [statement]).of(Kind.FILE) if not e.guarded and not e.own]
    if not written:
        return False
    near = list(_near(project, module, statement))
    return any(_is_in(effect, *place) for effect in written for place in near)


def _near(project: Project, module: SourceModule, statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """The statement itself, and the short functions that it calls."""
    yield module.path, statement
    for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
        site = called_function(project, module, call)
        if site is not None and (site.node.end_lineno or 0) - site.node.lineno <= _LONGEST:
            yield site.module.path, site.node


def _is_in(effect: Effect, path: str, node: ast.stmt) -> bool:
    return effect.path == path and node.lineno <= effect.line <= (node.end_lineno or node.lineno)
