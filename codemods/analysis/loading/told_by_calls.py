"""What a function that makes a loader is told by those of its calls through which one loop comes to the loader."""

from __future__ import annotations

import ast

from codemods.analysis.loading.item_keys import Key
from codemods.analysis.loading.origins import Passed
from codemods.analysis.model.signatures import bind, defaults, is_bound
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def told_by_calls(
    project: Project, module: SourceModule, given: ast.expr, passed: Passed, part: tuple[Key, ...] | None = None
) -> tuple[ast.expr | None, ...] | None:
    """The values that a parameter is handed, its default included; None for what is no parameter, or has no such call.

    passed: the expressions on the ways from the loop to the loader, as `origins.passed_by` says. part: of the calls only those
    of whose result this part is on the way. A value that is not seen is None.
    """
    calls = calls_passed(project, module, given, passed, part)
    return tuple(value for _, value in calls) if calls else None


def calls_passed(
    project: Project, module: SourceModule, given: ast.expr, passed: Passed, part: tuple[Key, ...] | None = None
) -> list[tuple[SourceModule, ast.expr | None]]:
    """As `told_by_calls`, each value with the file that it stands in."""
    function = module.function_of(given)
    if not isinstance(given, ast.Name) or function is None:
        return []
    spec = function.args
    if given.id not in {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}:
        return []
    ids = {place for place, asked in passed if part is None or asked == part}
    sites = [c for c in uses_of(project, module, function).calls if id(c.call) in ids]
    return [(site.module, _handed(module, function, site.call, given.id)) for site in sites]


def _handed(module: SourceModule, function: FunctionNode, call: ast.Call, name: str) -> ast.expr | None:
    written = next((k.value for k in call.keywords if k.arg == name), None)
    if written is not None:  # also beside `**options`: Python refuses a keyword that comes twice
        return written
    values = bind(function, call, bound=is_bound(module, function))
    return None if values is None else values.get(name, defaults(function).get(name))


def may_be_off(values: tuple[ast.expr | None, ...]) -> bool:
    """True where one of the calls leaves it `False`."""
    return any(isinstance(v, ast.Constant) and v.value is False for v in values)
