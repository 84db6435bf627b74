"""Lines beside a file that every rank writes: the file is the error there, and a guard round the line alone would hide it."""

from __future__ import annotations

from codemods.analysis.output.effects import Kind, effects_of
from codemods.analysis.output.output_runs import Run, makes_folder
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.project import Project
from codemods.source import SourceModule

_NEAR = 3  # statements between the line and what it speaks of


def stands_beside_files(project: Project, module: SourceModule, run: Run) -> bool:
    """True where a statement near by, in the same block, writes a file on every rank."""
    block = module.block_of(run.first)
    places = [i for i, s in enumerate(block) if s is run.first or s is run.last]
    beside = block[max(places[0] - _NEAR, 0) : places[0]] + block[places[-1] + 1 : places[-1] + 1 + _NEAR]
    for statement in beside:
        if makes_folder(module, statement) or ranks_at(module, statement, project=project).some:
            continue
        written = effects_of(project, module, [statement]).of(Kind.FILE)
        if any(not e.guarded and not e.own for e in written):
            return True
    return False
