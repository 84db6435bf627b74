"""Files that some ranks look for again and again, until rank 0 has made them: they are there before they are whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.conditions import conjuncts
from codemods.analysis.files.asked_paths import asked as asked_in
from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.file_calls import Act, FileCall, file_call, meets
from codemods.analysis.files.file_flow import Step, brought_out, is_pause, ranks_in_function, steps_in
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.filled_on_demand import OnDemand, moves
from codemods.analysis.files.own_paths import callers_of, is_own_path
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.api.findings import Evidence
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_NAMED = lazy(r">[^<>]*\.\w{2,}$")  # the end of a path that is written out, with the ending of a file


def polled_files(project: Project, module: SourceModule) -> Iterator[OnDemand]:
    """One for each loop that waits for a file which rank 0 writes in place, and which is read behind the loop."""
    for loop in module.nodes(ast.While):
        function = module.function_of(loop)
        asked = _missing(project, module, loop.test) if function is not None else None
        if function is None or asked is None or ranks_in_function(project, module, loop) is Ranks.ZERO:
            continue
        if (found := _polled(project, module, function, loop, asked)) is not None and not is_run_by_nobody(project, module, loop):
            yield found


def _missing(project: Project, module: SourceModule, test: ast.expr) -> FileCall | None:
    """The question in `not exists(path)`, alone or beside a limit, and in `name not in os.listdir(folder)`."""
    parts = conjuncts(test)
    for part in parts:
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotIn):
            return next(asked_in(project, module, part), None)
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and isinstance(part.operand, ast.Call):
            return next(asked_in(project, module, part), None)
    return None


def _polled(
    project: Project, module: SourceModule, function: FunctionNode, loop: ast.While, asked: FileCall
) -> OnDemand | None:
    wanted = forms(module, asked.path)
    if not wanted or is_own_path(project, module, asked.path, whole=False):
        return None
    steps = list(steps_in(project, module, list(function.body)))
    written = [s for s in steps if s.act is Act.WRITES and s.forms & wanted]
    if not written or any(moves(s) or not _is_left_to_some(module, loop, s) for s in written):
        return None
    write = written[0]
    read = _first_read(write, _behind(steps, loop))
    read = read or next(_in_callers(project, module, function, loop, write), None) or _beside(module, function, wanted)
    if read is None or _pauses(module, loop, read):
        return None
    shown = Evidence("static", "the other ranks wait here until the file is there", module.path, loop.lineno)
    return OnDemand(function, asked, write, read, Way(((module, loop),), shown), by_zero=True)


def _behind(steps: Sequence[Step], loop: ast.While) -> list[Step]:
    inside = {id(n) for n in walk(loop)}
    at = max((i for i, s in enumerate(steps) if id(s.call) in inside), default=len(steps))
    return list(steps[at + 1 :])


def _first_read(write: Step, steps: Sequence[Step]) -> Step | None:
    """The first step that reads what was written, if nobody waits for the other ranks before."""
    for step in steps:
        if step.act is None:
            return None
        if step.act in (Act.READS, Act.LOADS) and any(
            meets(Act.WRITES, made, step.act, used) for made in write.forms for used in step.forms
        ):
            return step
    return None


def _in_callers(
    project: Project, module: SourceModule, function: FunctionNode, loop: ast.While, write: Step
) -> Iterator[Step]:
    for site in callers_of(project, module, function):
        outer = site.module.function_of(site.call)
        if outer is None or outer is function:
            continue
        brought = brought_out(project, FunctionSite(module, function), site.module, site.call, None)
        said = next((s for s in brought if s.call is write.call), None)
        steps = list(steps_in(project, site.module, list(outer.body)))
        if said is not None and (read := _first_read(said, _behind(steps, loop))) is not None:
            yield read


def _beside(module: SourceModule, function: FunctionNode, wanted: frozenset[str]) -> Step | None:
    """Another function of the file that reads a path of the very same words, down to its ending."""
    named = {form for form in wanted if _NAMED.search(form)}
    for call in module.nodes(ast.Call) if named else ():
        other = module.function_of(call)
        if other is None or other is function or (found := file_call(module, call)) is None or found.act is not Act.READS:
            continue
        if named & forms(module, found.path):
            return Step(Act.READS, wanted, module, call)
    return None


def _pauses(module: SourceModule, loop: ast.While, read: Step) -> bool:
    """True where the loop is left some seconds before the file is read: short files are whole by then."""
    function = module.function_of(loop)
    end = line_of(read.call) if read.module is module and module.function_of(read.call) is function else 1 << 30
    pauses = (c for c in module.calls_named("sleep") if module.function_of(c) is function and is_pause(module, c))
    return any((loop.end_lineno or loop.lineno) < c.lineno <= end for c in pauses)


def _is_left_to_some(module: SourceModule, loop: ast.While, write: Step) -> bool:
    """True for what rank 0 alone writes, and where a test of the rank parts the writing from the waiting."""
    if write.ranks is Ranks.ZERO:
        return True
    if write.module is not module:
        return False
    below: ast.AST = loop
    for up in module.ancestors(loop):
        if isinstance(up, ast.If) and any(s is below for s in up.orelse) and names_rank(module.text_of(up.test)):
            return any(n is write.call for s in up.body for n in walk(s))
        below = up
    return False
