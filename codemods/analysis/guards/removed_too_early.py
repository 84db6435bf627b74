"""What rank 0 removes while others may still read it: they have read it above, and nobody waits between the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.file_calls import Act, meets
from codemods.analysis.files.file_flow import steps_in
from codemods.analysis.guards.file_handover import Use, kept_behind, statements_above
from codemods.analysis.guards.guarded_changes import Write, guarded_changes
from codemods.analysis.names import end_of
from codemods.analysis.ranks.in_turn import in_turn
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_REMOVES = frozenset({"remove", "unlink", "rmtree"})
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
            if step.act not in _READ or step.ranks is not Ranks.ALL or _is_listed_to_go(step.module, step.call):
                continue
            for write in removed:
                if any(meets(Act.REMOVES, gone, step.act, read) for gone in write.forms for read in step.forms):
                    return write, Use(step.module, step.call, step.act)
    return None


def _is_listed_to_go(module: SourceModule, call: ast.AST) -> bool:
    """True for `for file in folder.iterdir(): os.remove(file)`: every rank empties the folder, and needs nothing of it."""
    loop = next((up for up in module.ancestors(call) if isinstance(up, (ast.stmt, ast.comprehension))), None)
    if not isinstance(loop, ast.For) or not any(n is call for n in walk(loop.iter)):
        return False
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    gone = (n for s in loop.body for n in walk(s) if isinstance(n, ast.Call) and end_of(n.func) in _REMOVES)
    return any(isinstance(n, ast.Name) and n.id in names for c in gone for n in walk(c))
