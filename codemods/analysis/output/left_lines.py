"""Lines that would go on being repeated: a guard round one of many is not worth the change."""

from __future__ import annotations

from collections.abc import Collection

from codemods.analysis.names import dotted
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def most_lines_stay(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True where no test for rank 0 is known at most of the prints of every rank, in a function or in the script itself."""
    key = ("most lines stay", module.path, 0 if function is None else function.lineno)
    return project.keep(key, lambda: _most_stay(project, module, function))


def _most_stay(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    calls = [c for c in module.calls_named("print") if module.function_of(c) is function]
    repeated = [c for c in calls if ranks_reaching(project, module, c) is Ranks.ALL]
    known = sum(guard_for(project, module, module.statement_of(c), lines=True) is not None for c in repeated)
    return 2 * known < len(repeated)


def most_logs_stay(project: Project, module: SourceModule, functions: Collection[FunctionNode]) -> bool:
    """True where every rank would go on logging more lines of the file than the functions log: the logger wants a filter."""
    calls = [c for c in module.calls_named("info", "debug") if "log" in dotted(c.func).rpartition(".")[0].lower()]
    inside = [c for c in calls if any(up in functions for up in module.ancestors(c))]
    rest = (c for c in calls if c not in inside)
    return len(inside) < sum(ranks_reaching(project, module, c) is Ranks.ALL for c in rest)
