"""What a function that makes a loader is told by those of its calls through which one loop comes to the loader."""

from __future__ import annotations

import ast

from codemods.analysis.model.signatures import bind, defaults, is_bound
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def told_by_calls(
    project: Project, module: SourceModule, given: ast.expr, passed: frozenset[int]
) -> tuple[ast.expr | None, ...] | None:
    """The values that a parameter is handed, its default included; None for what is no parameter, or has no such call.

    passed: the expressions on the ways from the loop to the loader, as `origins.passed_by` says. A value that is not seen is None.
    """
    function = module.function_of(given)
    if not isinstance(given, ast.Name) or function is None:
        return None
    spec = function.args
    if given.id not in {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}:
        return None
    calls = [c.call for c in uses_of(project, module, function).calls if id(c.call) in passed]
    if not calls:
        return None
    return tuple(_handed(module, function, call, given.id) for call in calls)


def _handed(module: SourceModule, function: FunctionNode, call: ast.Call, name: str) -> ast.expr | None:
    written = next((k.value for k in call.keywords if k.arg == name), None)
    if written is not None:  # also beside `**options`: Python refuses a keyword that comes twice
        return written
    values = bind(function, call, bound=is_bound(module, function))
    return None if values is None else values.get(name, defaults(function).get(name))


def may_be_off(values: tuple[ast.expr | None, ...]) -> bool:
    """True where one of the calls leaves it `False`."""
    return any(isinstance(v, ast.Constant) and v.value is False for v in values)
