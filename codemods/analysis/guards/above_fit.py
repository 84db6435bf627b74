"""Is rank 0 past a place before the other ranks begin? It is above `fit` where Lightning starts them there, and no launcher does.

`python train.py` is one process: it goes through what stands above `trainer.fit`, and starts the others inside of it (by the
script anew, or spawned). What it alone has done to files is done by then. Under `torchrun` all of them begin at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.guards.before_group import RUNS, starts_at
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.positions import is_in_a_loop
from codemods.analysis.ranks.collectives import trainer_of
from codemods.analysis.ranks.launched_texts import names_a_launcher
from codemods.analysis.ranks.several_nodes import names_nodes
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_CLIMBS = 4
_STEPS_DOWN = 2


def is_past_before_the_others(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place above the first `fit` of a program, which the texts start as one process and Lightning as several."""
    return _is_started_by_lightning(project) and _is_above(project, module, node, below=False, climbs=_CLIMBS)


def _is_started_by_lightning(project: Project) -> bool:
    """True where the texts start a program with Lightning by Python alone, and nothing by a launcher or on several nodes."""

    def ask() -> bool:
        every = starts(project)
        plain = any(s.path and b"ightning" in (project.read(s.path) or b"") for s in every)
        if not plain or any(s.launched or s.several for s in every):
            return False
        return not names_a_launcher(project) and not names_nodes(project)

    return not (project.observed or project.launched) and project.keep("Lightning alone starts ranks", ask)


def _is_above(project: Project, module: SourceModule, node: ast.AST, *, below: bool, climbs: int) -> bool:
    """below: a run of a Trainer is seen further down on the way so far. The way is followed up to where the program begins."""
    if is_in_a_loop(module, node):
        return False  # in the second round the others are there
    function = module.function_of(node)
    line = getattr(node, "lineno", 0)
    for call in _calls(module, function):
        runs = _runs_a_trainer(project, module, call, _STEPS_DOWN)
        if call.lineno < line and (runs or starts_at(project, module, call)):
            return False
        if call.lineno > line and not below:
            if not runs and starts_at(project, module, call):
                return False
            below = runs
    if function is None:
        return below
    used = uses_of(project, module, function)
    if used.more or used.handed_on or not climbs:
        return False  # a sweep may call it again and again
    sites = used.outside_tests().calls
    callers = {(s.module.path, id(s.module.function_of(s.call))) for s in sites}
    if not sites:
        return below
    one_each = len(callers) == len(sites)
    return one_each and all(_is_above(project, s.module, s.call, below=below, climbs=climbs - 1) for s in sites)


def _calls(module: SourceModule, function: FunctionNode | None) -> Iterator[ast.Call]:
    scope = function if function is not None else module.tree
    found = (n for n in walk_scope(scope) if isinstance(n, ast.Call))
    yield from sorted(found, key=lambda c: (c.lineno, c.col_offset))


def _runs_a_trainer(project: Project, module: SourceModule, call: ast.Call, steps: int) -> bool:
    """True for `trainer.fit(…)` of Lightning, and for a function of the project that comes to one."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in RUNS and trainer_of(module, func.value, project) == "lightning":
        return True
    called = called_function(project, module, call) if steps else None
    return called is not None and _comes_to_a_run(project, called, steps - 1)


def _comes_to_a_run(project: Project, site: FunctionSite, steps: int) -> bool:
    key = ("comes to a run of a Trainer", site.module.path, site.node.lineno, steps)
    calls = _calls(site.module, site.node)
    return project.keep(key, lambda: any(_runs_a_trainer(project, site.module, c, steps) for c in calls))
