"""Is a run of several processes seen to come to a place, step by step from a program of the project?"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from codemods.analysis.ranks.asked_loops import is_in_loop_of_one
from codemods.analysis.ranks.cannot_run import cannot_be_imported, is_behind_an_end
from codemods.analysis.ranks.closed_by_options import closed_by_options
from codemods.analysis.ranks.closed_modes import is_in_closed_mode
from codemods.analysis.ranks.excluded_modes import is_in_mode_of_one
from codemods.analysis.ranks.failing_statements import Places
from codemods.analysis.ranks.inference_modes import is_in_unshared_mode
from codemods.analysis.ranks.made_in_runs import is_made_by_runs_of_one
from codemods.analysis.ranks.never_set import needs_what_nobody_sets
from codemods.analysis.ranks.notebook_cells import is_of_the_kernel, starts_no_ranks
from codemods.analysis.ranks.one_device import trains_on_one_device
from codemods.analysis.ranks.others_ended import others_end_nearby, others_have_ended
from codemods.analysis.ranks.refused_below import is_refused_below
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody, is_shown_to_run
from codemods.analysis.ranks.seen_starts import runs_on_several, runs_one_a_machine, started
from codemods.analysis.ranks.several_processes import is_asserted_alone
from codemods.analysis.ranks.start_kinds import Start
from codemods.analysis.ranks.started_alone import is_started_alone, is_started_otherwise
from codemods.analysis.ranks.superseded import is_superseded
from codemods.analysis.ranks.sure_failures import is_behind_a_failure, is_in_a_failing_block
from codemods.analysis.ranks.trained_by_ranks import is_of_training_ranks
from codemods.analysis.ranks.unrun_hooks import is_in_untested_hook
from codemods.analysis.ranks.unused import is_of_a_library
from codemods.analysis.ranks.without_launcher import is_without_launcher
from codemods.api.findings import Span
from codemods.files.source import SourceModule, once_a_module
from codemods.files.text_file import NOTEBOOK, TextFile
from codemods.store.project import Project

T = TypeVar("T")


def unseen_run(project: Project, module: SourceModule, span: Span) -> str | None:
    """Under which assumption ranks come to a place of `module`, where no program is seen to; None where one is.

    Also None in a folder of classes and functions alone, whose programs stand elsewhere, and in a file that is no Python.
    """
    if isinstance(module, TextFile):
        return None
    function = module.function_of(_statements(module).get(span.line, module.tree))
    if _once_a_function("unseen run", is_shown_to_run, project, module, span):
        start = start_at(project, module, span)
        if start is Start.OPEN:
            return "right if its program is launched as several processes: no command of the repository does so"
        if start is Start.PRESUMED:
            return "right if its program is launched as several processes: it runs as one, too, and no text names a launcher"
        if start is Start.LIKELY:
            return "right if its program is run as several processes: no command and no call says how many there are"
        field = _once_a_function("left over", _field_that_nobody_sets, project, module, span)
        if function is not None and field:
            return f"right if {function.name} ever gets through: it calls self.{field}, which nothing sets"
        untested = is_in_untested_hook(project, module, span.line)
        return "right if somebody asks a Trainer to test: nothing of the repository does so" if untested else None
    if function is None:
        return "right if this file is run as several processes: no program of the project is seen to do so"
    return f"right if ranks come here: no program of several processes is seen to call {function.name}"


def start_at(project: Project, module: SourceModule, span: Span) -> Start | None:
    """As how many processes the programs are run that come to a place; None where no program is seen to.

    What was seen of a run, in a log or by a probe, says more than the source; so does the user, by the setting `launched`.
    """
    if isinstance(module, TextFile) or project.observed or project.launched:
        return Start.SEVERAL
    return _once_a_function("start at", started, project, module, span)


def comes_by_rank_zero(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that a program of several processes comes to where what rank 0 does alone counts as well."""
    return not isinstance(module, TextFile) and _once_a_function("by rank 0", runs_on_several, project, module, span)


def is_one_a_machine(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that only programs come to whose processes have a machine, its console and its disk for themselves."""
    if isinstance(module, TextFile) or project.observed or project.launched:
        return False
    return _once_a_function("one a machine", runs_one_a_machine, project, module, span)


def is_of_unshared_mode(project: Project, module: SourceModule, span: Span) -> bool:
    """True in a mode of the program that trains nothing and shares nothing out: nobody starts several processes for it."""
    if isinstance(module, TextFile) or project.observed or project.launched:
        return False
    statement = _statements(module).get(span.line)
    return statement is not None and is_in_unshared_mode(project, module, statement)


def is_of_a_training_of_ranks(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place of a program that is written to train on several processes, in a mode of it that does."""
    if is_of_unshared_mode(project, module, span):
        return False
    return _once_a_function("of training ranks", is_of_training_ranks, project, module, span)


def is_of_a_closed_mode(project: Project, module: SourceModule, span: Span) -> bool:
    """True under an option or a setting that keeps off each run which the project shows, also where each has one device."""
    if isinstance(module, TextFile) or project.observed or project.launched:
        return False
    statement = _statements(module).get(span.line)
    if statement is None:
        return False
    if is_in_closed_mode(project, module, statement) or is_in_loop_of_one(project, module, statement):
        return True
    if is_started_otherwise(project, module, statement):
        return True
    return is_made_by_runs_of_one(project, module, statement)


def started_alone(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place of `module` that only programs come to which the repository's texts start as one process."""
    if isinstance(module, TextFile):
        return False
    return is_started_alone(project, module, _statements(module).get(span.line, module.tree))


def is_without_a_launcher(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that a test keeps for runs which no launcher started, and which start no processes by themselves."""
    if isinstance(module, TextFile):
        return False
    return is_without_launcher(project, module, _statements(module).get(span.line, module.tree))


def never_runs(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that no run gets to: what stands right above it fails in every run, no value of an option leads there, its
    file cannot be imported, or is one that a newer one has taken the place of.
    """
    if isinstance(module, TextFile):
        return False
    if cannot_be_imported(project, module) or is_superseded(project, module.path):
        return True
    statement = _statements(module).get(span.line, module.tree)
    return is_behind_a_failure(project, module, statement) or closed_by_options(project, module, statement) is not None


def runs_to_no_end(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place in a block that no run gets through: whoever runs it has another error to see."""
    if isinstance(module, TextFile):
        return False
    statement = _statements(module).get(span.line, module.tree)
    if is_refused_below(module, statement) or is_in_a_failing_block(project, module, statement):
        return True
    return others_end_nearby(project, module, statement)


def is_of_no_test(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place in a hook of tests that nothing asks for, but for one of a package."""
    if isinstance(module, TextFile):
        return False
    return is_in_untested_hook(project, module, span.line) and not is_of_a_library(project, module.path)


def ends_above(project: Project, module: SourceModule, span: Span, at: Places) -> bool:
    """True for a place that no run gets to, where expressions raise on every rank: those of `at`, which others have found."""
    return is_behind_a_failure(project, module, _statements(module).get(span.line, module.tree), at)


def ends_nearby(project: Project, module: SourceModule, span: Span, at: Places) -> bool:
    """The same for a place in a block, or under calls in blocks, that ends there."""
    return is_in_a_failing_block(project, module, _statements(module).get(span.line, module.tree), at=at)


def rank_zero_is_left(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that rank 0 alone comes to: the others have ended above, for want of what it alone has."""
    if isinstance(module, TextFile):
        return False
    statement = _statements(module).get(span.line)
    return statement is not None and others_have_ended(project, module, statement)


def is_never_reached(project: Project, module: SourceModule, span: Span) -> bool:
    """True for a place that no program of the project comes to in a run of several processes.

    Outside of functions it is one behind an `exit()` or a `break`, and in a script whose Trainers have one device.
    """
    if isinstance(module, TextFile) or project.observed:
        return False
    statement = _statements(module).get(span.line)
    function = module.function_of(statement) if statement is not None else None
    if statement is None:
        return False
    if is_in_mode_of_one(project, module, statement):
        return True
    if function is None:  # the cells of a notebook are run one by one
        ends = not module.path.endswith(NOTEBOOK) and is_behind_an_end(module, statement)
        return ends or (not project.launched and trains_on_one_device(project, module, None))
    if is_asserted_alone(module, statement) or is_behind_an_end(module, statement):
        return True
    key = ("never reached", module.path, function.lineno)
    return project.keep(key, lambda: is_run_by_nobody(project, module, function.body[0], shared=False, by_one=True))


def only_in_the_kernel(module: SourceModule, span: Span) -> bool:
    """True for a place of a notebook that its kernel alone runs, which is one process."""
    return module.path.endswith(NOTEBOOK) and is_of_the_kernel(module, _statements(module).get(span.line, module.tree))


def runs_no_ranks(module: SourceModule) -> bool:
    """True for a notebook that starts no ranks at all."""
    return module.path.endswith(NOTEBOOK) and starts_no_ranks(module)


def _field_that_nobody_sets(project: Project, module: SourceModule, node: ast.AST) -> str:
    function = module.function_of(node)
    return needs_what_nobody_sets(project, module, function) if function is not None else ""


def _once_a_function(
    question: str, ask: Callable[[Project, SourceModule, ast.AST], T], project: Project, module: SourceModule, span: Span
) -> T:
    """The answer for the place, which is the same for all of a function: a file may have thousands of findings in one."""
    statement = _statements(module).get(span.line, module.tree)
    function = module.function_of(statement)
    key = (question, module.path, 0 if function is None else function.lineno)
    return project.keep(key, lambda: ask(project, module, statement))


@once_a_module
def _statements(module: SourceModule) -> dict[int, ast.stmt]:
    """Line -> the innermost statement round it."""
    out: dict[int, ast.stmt] = {}
    below: list[ast.AST] = [module.tree]
    while below:
        for inner in ast.iter_child_nodes(below.pop()):
            if isinstance(inner, ast.stmt):
                out |= dict.fromkeys(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1), inner)
            if isinstance(inner, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                below.append(inner)
    return out
