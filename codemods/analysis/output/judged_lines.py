"""Which runs of prints of a function may be kept to rank 0, and why every other line stays on every rank.

What belongs to one message goes together or stays together.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.names import dotted
from codemods.analysis.output.effects import Kind
from codemods.analysis.output.environment_guards import BY_LAUNCHER
from codemods.analysis.output.guard_spelling import Spelling, guard_for
from codemods.analysis.output.left_lines import most_lines_stay
from codemods.analysis.output.levels_by_rank import has_handlers_on_zero_alone, has_levels_by_rank
from codemods.analysis.output.log_files_by_rank import has_log_file_of_each_rank
from codemods.analysis.output.message_parts import (
    holds_its_body,
    is_other_end,
    is_title_or_result,
    says_the_same,
    stands_below_its_header,
)
from codemods.analysis.output.muted_print import is_muted
from codemods.analysis.output.output_runs import Run, makes_folder, output_runs
from codemods.analysis.output.said_for_all import OWN_WORDS, is_for_everybody, why_for_itself
from codemods.analysis.output.staying_lines import ONE_MESSAGE, why_it_stays
from codemods.analysis.ranks.launched_files import is_launched
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.api.findings import Evidence
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_UNKNOWN = "it does more than print, or a value in it is used elsewhere"


@record
class Judged:
    """A run of prints with the test that it may go under. stays: why every rank goes on printing it, "" where it may go."""

    run: Run
    spelled: Spelling = Spelling("")
    assumes: str = ""
    stays: str = ""


@record
class Lines:
    """going: what may be kept to rank 0. remaining: the prints of the function that go on coming once for each process."""

    going: tuple[Judged, ...]
    remaining: tuple[Evidence, ...] = ()


def judged_runs(project: Project, module: SourceModule, function: FunctionNode | ast.Module) -> Lines:
    """The prints of a function, or of the script itself, that every rank makes."""
    runs = output_runs(project, module, function, lambda s: _may_go_under(module, s))
    judged = [_judged(project, module, function, run) for run in runs]
    if all(j.stays for j in judged):
        return Lines(())
    repeated = _repeated(project, module, function)
    while True:
        whole = _whole_messages(module, judged, repeated)
        if whole == judged:
            break
        judged = whole
    staying = [(s, why) for s in repeated if (why := _why(module, judged, s))]
    beside = tuple(Evidence("static", why, module.path, s.lineno) for s, why in staying)
    return Lines(tuple(j for j in judged if not j.stays), beside)


def _judged(project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run) -> Judged:
    why, spelled, assumes = _asked(project, module, function, run)
    if why and left(module, run.first, "every rank goes on printing it: {}", why):
        return Judged(run, stays=why)
    return Judged(run, spelled, assumes)


def _asked(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run
) -> tuple[str, Spelling, str]:
    """(why the run stays on every rank, the test that it may go under, what that assumes)."""
    nothing = Spelling("")
    if run.makes(Kind.FILE, Kind.TRACKER):
        return "it stands among what writes a file", nothing, ""
    if ranks_reaching(project, module, run.first).some or (run.makes(Kind.PRINT) and is_muted(project, module, run.first)):
        return "one rank alone prints there", nothing, ""
    if _is_logged_alone(run) and has_log_file_of_each_rank(project):
        return "each rank logs to a file of its own", nothing, ""
    assumes = _assumes(project, module, function, run)
    spelled = guard_for(project, module, run.first, lines=True) if assumes is not None else None
    if assumes is None or spelled is None:
        return "no test for rank 0 is sure to work there", nothing, ""
    if spelled.assumes == BY_LAUNCHER and not is_launched(project, module.path):
        return "no command is seen that launches the file", nothing, ""
    if why := why_it_stays(project, module, function, run):
        return why, nothing, ""
    if most_lines_stay(project, module, None if isinstance(function, ast.Module) else function):
        return "no test for rank 0 is known at most prints of the function", nothing, ""
    return "", spelled, assumes


def _repeated(project: Project, module: SourceModule, function: FunctionNode | ast.Module) -> list[ast.stmt]:
    """The statements of a function that are a print which every rank comes to, none of `except`."""
    scope = None if isinstance(function, ast.Module) else function
    found: list[ast.stmt] = []
    for call in module.calls_named("print"):
        statement = module.parent(call)
        if module.function_of(call) is not scope or not isinstance(statement, ast.Expr) or dotted(call.func) != "print":
            continue
        in_handler = any(isinstance(up, ast.ExceptHandler) for up in module.ancestors(call))
        quiet = in_handler or is_muted(project, module, statement)  # `with Quiet(rank): print(…)`
        if not quiet and ranks_reaching(project, module, call) is Ranks.ALL:
            found.append(statement)
    return found


def _whole_messages(module: SourceModule, judged: Sequence[Judged], repeated: Sequence[ast.stmt]) -> list[Judged]:
    """The runs, where one that belongs to a line which stays is left as it is, too."""
    staying = {s: why for s in repeated if (why := _why(module, judged, s))}
    return [j if j.stays or not _is_half(module, j.run, staying) else replace(j, stays=ONE_MESSAGE) for j in judged]


def _is_half(module: SourceModule, run: Run, staying: dict[ast.stmt, str]) -> bool:
    alike = [s for s, why in staying.items() if why not in OWN_WORDS]  # those are messages of their own
    return is_part_of_message(module, run, alike, headers=list(staying))


def is_part_of_message(
    module: SourceModule, run: Run, lines: Sequence[ast.stmt], *, headers: Sequence[ast.stmt] | None = None
) -> bool:
    """True where a run belongs to one of these lines: as the header of a loop, a line under one, the other end of a work, a title
    of its result.
    """
    tops = lines if headers is None else headers
    if holds_its_body(module, run.last, lines) or stands_below_its_header(module, run.first, tops):
        return True
    if is_title_or_result(module, run.first, run.last, tops):
        return True
    beside = {id(s) for s in module.block_of(run.first)}
    if any(is_other_end(one, s) for s in tops if id(s) in beside for one in run.statements):
        return True
    return any(says_the_same(module, one, s) for s in lines for one in run.statements)


def _why(module: SourceModule, judged: Sequence[Judged], statement: ast.stmt) -> str:
    """Why a print stays on every rank, "" where it goes."""
    for one in judged:
        if one.run.first.lineno <= statement.lineno <= (one.run.last.end_lineno or one.run.last.lineno):
            return one.stays
    return why_for_itself(module, statement) or _UNKNOWN


def _may_go_under(module: SourceModule, statement: ast.stmt) -> bool:
    """True for what is said once for all ranks, and makes no folder, which stays on every rank.

    The prints beside a folder take a guard of their own.
    """
    return is_for_everybody(module, statement) and not makes_folder(module, statement)


def _assumes(project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run) -> str | None:
    """What a guard round the run assumes: nothing where it prints or logs to its class's own logger; None where it must stay.

    A logger of the file is often set up by rank already. Its lines count where the function keeps others of them to rank 0.
    """
    kinds = {e.kind for e in run.effects.output}
    if _is_logged_alone(run) and (has_levels_by_rank(project) or has_handlers_on_zero_alone(project)):
        return None  # the other ranks drop the line
    if Kind.PRINT in kinds or any(e.kind is Kind.LOG and e.text.startswith("self.") for e in run.effects.output):
        return ""
    if Kind.LOG in kinds and not isinstance(function, ast.Module) and _guards_lines(project, module, function):
        return "assumes that this line, as others of the function are, is wanted once and not from each process"
    return None


def _is_logged_alone(run: Run) -> bool:
    return run.makes(Kind.LOG) and not run.makes(Kind.PRINT)


def _is_set_up_everywhere(project: Project, module: SourceModule) -> bool:
    """True where the file calls `basicConfig` on every rank: without it the root logger drops what is below WARNING."""
    calls = module.calls_named("basicConfig")
    return bool(calls) and not any(ranks_at(module, call, project=project).some for call in calls)


def _guards_lines(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True where the function logs a line on rank 0 alone, and the file sets its logger up the same way for every rank."""
    if module.holds(b"setLevel") or not _is_set_up_everywhere(project, module):
        return False
    for call in module.calls_named("info"):
        if module.function_of(call) is function and ranks_at(module, call, project=project) in (Ranks.ZERO, Ranks.LOCAL_ZERO):
            return True
    return False
