"""What rank 0 removes while others may still read it: they have read it above, and nobody waits between the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_calls import Act, meets
from codemods.analysis.files.file_flow import steps_in
from codemods.analysis.guards.file_handover import Use, kept_behind, statements_above
from codemods.analysis.guards.guarded_changes import Write, guarded_changes
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_READ = frozenset({Act.READS, Act.LOADS, Act.LISTS})


@record
class Removal:
    """anchor: the guard, above which rank 0 should wait. use: the last place above it where every rank reads what is removed."""

    module: SourceModule
    anchor: ast.stmt
    write: Write
    use: Use

    @property
    def function(self) -> FunctionNode | None:
        return self.module.function_of(self.anchor)


def removals(project: Project, module: SourceModule) -> Iterator[Removal]:
    """The guards under which rank 0 removes a path that every rank reads above, in the same function."""
    for (anchor, whole), (_, writes) in guarded_changes(project, module).items():
        removed = [w for w in writes if w.act is Act.REMOVES]
        if whole is not None or not removed or ranks_at(module, anchor, project=project).some or in_turn(project, module, anchor):
            continue
        if (found := _last_read(project, module, anchor, removed)) is not None:
            yield Removal(module, anchor, *found)


def _last_read(project: Project, module: SourceModule, anchor: ast.stmt, removed: list[Write]) -> tuple[Write, Use] | None:
    for statement in reversed(statements_above(module, anchor)):
        removed = kept_behind(removed, statement)
        for step in reversed(list(steps_in(project, module, [statement]))) if removed else ():
            if step.act is None:
                return None
            if step.act not in _READ or step.ranks is not Ranks.ALL:
                continue
            for write in removed:
                if any(meets(Act.REMOVES, gone, step.act, read) for gone in write.forms for read in step.forms):
                    return write, Use(step.module, step.call, step.act)
    return None
