"""What runs when a training or an evaluation is over: no metric waits to be reduced there any more.

Measured on Lightning 2.6.6, two processes: `trainer.callback_metrics` is read on rank 0 alone behind `trainer.fit(...)`, then
a barrier finishes. Lightning's own launchers do the same in each process that they start: they call the function they are
given, then local rank 0 alone collects the metrics.
"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.ranks.reach import called_by_framework, to_a_launcher
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_RUNS = ("fit", "validate", "test", "predict")
_DEPTH = 8


def is_behind_a_run(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for what stands below `trainer.fit(...)` in the same function, and in functions that are only called there."""
    return _is_behind(project, module, node, frozenset())


def _is_behind(project: Project, module: SourceModule, node: ast.AST, seen: frozenset[int]) -> bool:
    function = module.function_of(node)
    if _below_a_run(module, function, node):
        return True
    if function is None:
        return False
    if _below_the_work_of_a_process(project, module, function, node):
        return True
    if seen:
        return _entered_behind(project, module, function, seen)
    key = ("behind a run", module.path, function.lineno, function.name)
    return project.memo(key, lambda: _entered_behind(project, module, function, seen))


def _entered_behind(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> bool:
    """True where every call of the function stands behind a run; one from its own cycle says nothing."""
    if id(function) in seen:
        return True
    if len(seen) > _DEPTH or called_by_framework(project, module, function) is not None:
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or used.handed_on or not used.calls:
        return False
    return all(_is_behind(project, s.module, s.call, seen | {id(function)}) for s in used.calls)


def _below_the_work_of_a_process(project: Project, module: SourceModule, function: FunctionNode, node: ast.AST) -> bool:
    """True below `results = function(*args, **kwargs)` in what a launcher runs in each process."""
    given = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    line = getattr(node, "lineno", 0)
    work = [c for name in given for c in module.calls_named(name) if isinstance(c.func, ast.Name) and c.lineno < line]
    if not any(module.function_of(c) is function for c in work):
        return False
    return any(to_a_launcher(place) for place in uses_of(project, module, function).handed_on)


def _below_a_run(module: SourceModule, function: FunctionNode | None, node: ast.AST) -> bool:
    line = getattr(node, "lineno", 0)
    for call in module.calls_named(*_RUNS):
        if call.lineno < line and module.function_of(call) is function and isinstance(call.func, ast.Attribute):
            if "trainer" in dotted(call.func.value).lower():
                return True
    return False
