"""SummaryWriters that every rank makes: curves drawn once for each process, or event files beside rank 0's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import ranks_in_file
from codemods.analysis.files.every_rank import is_for_some
from codemods.analysis.names import qualified
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.tracker_starts import asks_for_run
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.uses import uses_of
from codemods.data.host_only import TRACKER_METHODS
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_WRITERS = frozenset({"torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter"})


@record
class EventWriter:
    call: ast.Call
    message: str
    reason: str


def writers_of_each_rank(project: Project, module: SourceModule) -> Iterator[EventWriter]:
    """Those that a call writes to over which no test of the rank stands; a folder that names the rank is meant."""
    for call in module.calls_named("SummaryWriter"):
        if qualified(module, call.func) not in _WRITERS or names_rank(module.text_of(module.statement_of(call))):
            continue
        if not ranks_in_file(project, module) or ranks_reaching(project, module, call).some:
            continue
        if is_for_some(project, module, call):
            continue
        reports = list(module.calls_named(*TRACKER_METHODS))
        uses = [c for c in reports if not ranks_reaching(project, module, c).some and not is_for_some(project, module, c)]
        if not uses or is_run_by_nobody(project, module, call):
            continue
        if not any(asks_for_run(module, module.statement_of(c)) for c in uses):
            yield _told(project, module, call, uses, some_are_guarded=len(uses) < len(reports))


def _told(
    project: Project, module: SourceModule, call: ast.Call, uses: list[ast.Call], *, some_are_guarded: bool
) -> EventWriter:
    line = uses[0].lineno
    stray = "every rank makes a SummaryWriter: each leaves an event file of its own beside that of rank 0"
    if any(_is_called_for_some(project, module, c) for c in uses):
        return EventWriter(call, stray, f"make it on rank 0 and None elsewhere; some calls lead every rank to line {line}")
    if some_are_guarded:
        shared = f"make it on rank 0 and None elsewhere, and put line {line} under a test for rank 0"
        return EventWriter(call, f"{stray}, and line {line} writes to all of them", shared)
    return EventWriter(
        call,
        "every rank makes a SummaryWriter and writes to it: TensorBoard draws each curve once for each process",
        f"make it on rank 0 and None elsewhere, and put what writes to it (line {line}) under a test for rank 0",
    )


def _is_called_for_some(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in a function that one of its calls leads some ranks to, whatever another call does in a program of its own."""
    function = module.function_of(node)
    calls = uses_of(project, module, function).outside_tests().calls if function is not None else ()
    return any(ranks_at(c.module, c.call, project=project).some for c in calls)
