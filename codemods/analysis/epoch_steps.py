"""Where a prepared scheduler is stepped once an epoch: behind the loop over the batches, in the loop over the epochs.

Either both loops stand in one function, or the function goes over the batches of one epoch and all its callers stand in a loop.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, last
from codemods.analysis.positions import is_in_a_loop
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.schedules import Schedule
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

Loop = ast.For | ast.While


def epoch_steps(project: Project, module: SourceModule, schedule: Schedule) -> list[ast.Call]:
    """Where the scheduler is stepped behind the batches of an epoch, and not also where a test says that gradients are shared."""
    names = _names(module, schedule)
    found = [c for c in module.calls_named("step") if isinstance(c.func, ast.Attribute) and dotted(c.func.value) in names]
    return [s for s in found if _is_behind_batches(project, module, s, schedule) and not _is_of_batches(module, s)]


def _names(module: SourceModule, schedule: Schedule) -> set[str]:
    """What the scheduler is called: as it is given to `prepare`, and as that gives it back."""
    names = {dotted(schedule.given)}
    up, given = module.parent(schedule.prepared), schedule.prepared.args
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and not any(isinstance(a, ast.Starred) for a in given):
        target = up.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(given):
            names |= {dotted(e) for e, a in zip(target.elts, given, strict=True) if a is schedule.given}
        elif len(given) == 1:
            names.add(dotted(target))
    return names - {""}


def _is_behind_batches(project: Project, module: SourceModule, step: ast.Call, schedule: Schedule) -> bool:
    loop = next((up for up in module.ancestors(step) if isinstance(up, (ast.For, ast.While, ast.FunctionDef))), None)
    if loop is None:
        return False
    inner = [n for n in walk_scope(loop) if isinstance(n, (ast.For, ast.While))]
    if not any(_goes_back(n) for n in inner):
        return False
    if isinstance(loop, ast.FunctionDef):
        if module.function_of(schedule.prepared) is loop:
            return False  # made anew in each call
        return _is_last(module, loop, inner, step) and _is_called_in_loops(project, module, loop)
    return not _goes_back(loop, apart=inner)


def _is_last(module: SourceModule, function: ast.FunctionDef, loops: list[Loop], step: ast.Call) -> bool:
    """True for a statement of the function itself, below each loop that trains."""
    statement = module.parent(step)
    below = [n for n in loops if _goes_back(n)]
    return statement in function.body and all((n.end_lineno or 0) < step.lineno for n in below)


def _is_called_in_loops(project: Project, module: SourceModule, function: ast.FunctionDef) -> bool:
    uses = uses_of(project, module, function)
    calls = uses.outside_tests().calls
    return bool(calls) and not uses.more and all(is_in_a_loop(site.module, site.call) for site in calls)


def _goes_back(loop: Loop, apart: list[Loop] | None = None) -> bool:
    hidden = {id(n) for other in apart or () for n in walk(other)}
    found = (n for n in walk_scope(loop) if isinstance(n, ast.Attribute) and id(n) not in hidden)
    return any(n.attr == "backward" for n in found)


def _is_of_batches(module: SourceModule, step: ast.Call) -> bool:
    """True where a test keeps this step from the schedule: another arm made it."""
    return any(isinstance(up, ast.If) and last(dotted(up.test)) == "sync_gradients" for up in module.ancestors(step))
