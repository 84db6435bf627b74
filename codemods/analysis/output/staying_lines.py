"""Why a run of prints stays on every rank, in words for whoever reads what a fix of other lines has left."""

from __future__ import annotations

import ast

from codemods.analysis.files.first_runs import is_of_a_first_run
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.names import dotted
from codemods.analysis.output.bad_numbers import of_bad_numbers, reports_bad_numbers
from codemods.analysis.output.beside_files import stands_beside_files
from codemods.analysis.output.debug_flags import is_under_a_debug_switch
from codemods.analysis.output.debug_lines import of_debugging, shows_nothing
from codemods.analysis.output.filled_by_zero import is_behind_what_zero_fills
from codemods.analysis.output.half_lines import tears_a_line
from codemods.analysis.output.one_message import belongs_to_each_rank, lines_beside
from codemods.analysis.output.output_runs import Run
from codemods.analysis.output.own_lines import Own, own_line, trains
from codemods.analysis.output.rank_share import over_a_share
from codemods.analysis.output.said_for_all import is_for_everybody
from codemods.analysis.positions import above, behind
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

OWN_SHARE = "it shows what each rank has for itself"
ONE_MESSAGE = "it belongs to lines that each rank is to print"
_NEAR = 2  # statements between the lines of a start and of its end


def why_it_stays(project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run) -> str:
    """What keeps a run of prints on every rank, where a test for rank 0 is known; "" where it may go under that."""
    if _stands_beside_one_for_each(project, module, function, run):
        return ONE_MESSAGE
    if over_a_share(module, run.statements):
        return OWN_SHARE
    if of_debugging(run.statements) or shows_nothing(run.statements):
        return "it is left over from looking for an error, or empty"
    if tears_a_line(module, function, run.statements):
        return "it is half a line"
    if is_never_asked_for(project, module, run.first) or is_under_a_debug_switch(project, module, run.statements):
        return "it stands under a switch that the project leaves off"
    if of_bad_numbers(module, run.statements) or reports_bad_numbers(project, run):
        return "it reports a number that went wrong on one rank"
    if is_of_a_first_run(project, module, run.first) or is_behind_what_zero_fills(project, module, run.first):
        return "the other ranks find nothing to do there"
    if own_line(project, module, function, run.statements).own is Own.RESULT:
        return OWN_SHARE  # no repetition: what a guard takes from the other ranks is shown nowhere else
    if stands_beside_files(project, module, run):
        return "it belongs to a file that every rank writes"  # the file is the error: one test belongs round both
    return ""


def _stands_beside_one_for_each(
    project: Project, module: SourceModule, function: FunctionNode | ast.Module, run: Run
) -> bool:
    """True where a line near by is printed by every rank on purpose, or shows numbers of its own: they belong together, as a
    start and its end do, or as what is printed line by line without anything else in between.
    """
    message = list(lines_beside(module, run))
    if not all(is_for_everybody(module, s) for s in message) or belongs_to_each_rank(project, module, function, message):
        return True
    beside = above(module, run.first)[-_NEAR:] + behind(module, run.last)[:_NEAR]
    lines = [s for s in beside if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and dotted(s.value.func) == "print"]
    loops = [s for s in beside if isinstance(s, ast.For) and _is_printed_by_all(project, module, s) and not trains([s])]
    if any(own_line(project, module, function, [s]).own is Own.RESULT for s in loops):
        return True
    return any(not is_for_everybody(module, s) for s in lines)


def _is_printed_by_all(project: Project, module: SourceModule, loop: ast.For) -> bool:
    """True where a print of the loop is no line of one rank alone already."""
    return any(isinstance(n, ast.Call) and _is_print(n) and not ranks_reaching(project, module, n).some for n in walk(loop))


def _is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
