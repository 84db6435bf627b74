"""Why statements that write files are told without a fix: what rank 0 alone would lose, or what others wait for."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import CHANGES, file_call
from codemods.analysis.files.file_runs import HOOKS, only_takes_away
from codemods.analysis.files.own_results import filled_by_batches
from codemods.analysis.files.paths_given_out import given_out
from codemods.analysis.files.scratch_files import OF_ONE_PROCESS, is_scratch
from codemods.analysis.files.sent_on import sent_on_by_all
from codemods.analysis.files.told_files import gathered_first, own_share_in, shared_out
from codemods.analysis.output.opened_files import opened_above
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.rank_data import rank_local
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def why_no_fix(
    module: SourceModule, project: Project, function: FunctionNode | ast.Module, run: Run, paths: list[ast.expr]
) -> str:
    """The reason why a run of statements that write files is told without a fix; "" where it may go under a test for rank 0.

    paths: of the files that the run changes.
    """
    calls = (n for s in run.statements for n in walk(s) if isinstance(n, ast.Call))
    if any((f := file_call(module, c)) is not None and f.act in CHANGES and is_scratch(module, c, f.path) for c in calls):
        return OF_ONE_PROCESS
    if not isinstance(function, ast.Module):
        body = function.body if function.name in HOOKS else list(run.statements)
        if own := rank_local(project, module, function, body):
            return f"{own}: rank 0 alone would lose the other ranks' part; gather it on every rank, then write"
        if filled := filled_by_batches(((module, run.first),)):
            return gathered_first(filled)
        if not only_takes_away(run.effects.output) and (first := shared_out(project, module, run.statements)):
            return first
        if out := given_out(function, paths):
            return f"whoever gets `{out}` may read the file, on every rank: let rank 0 write it, with a barrier behind it"
    if (sent := sent_on_by_all(project, module, run.last, paths)) is not None:
        return f"every rank sends that file on in line {sent}: put the test round both"
    if (opening := opened_above(module, run.statements)) is not None:
        if own := own_share_in(project, module, opening):
            return own
        return f"every rank opens that file, and empties it, in line {opening.lineno}: put the test round the opening too"
    return ""
