"""The calls that set a switch of a function on: `get_sets(root, download=True)` for `download=download` in its body."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.handed import handed
from codemods.analysis.model.signatures import defaults
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEPTH = 3


def switched_on(
    project: Project, module: SourceModule, value: ast.expr, at: ast.Call, depth: int = 0
) -> Iterator[CallSite]:
    """The calls by which `value`, an argument of the call `at`, is True: `at` itself, or those of the functions round it.

    Nothing where the source does not show it: a setting, a test, a name that is given something else in between.
    """
    if isinstance(value, ast.Constant):
        if value.value is True:
            yield CallSite(module, at)
        return
    place = _parameter(project, module, value)
    if place is None or depth > _DEPTH:
        return
    site, name = place
    for caller in callers_of(project, site.module, site.node):
        given = _given(site, caller.call, name)
        if given is not None:
            yield from switched_on(project, caller.module, given, caller.call, depth + 1)


def _given(site: FunctionSite, call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives a parameter, its default where it leaves it out; None where `*args` or `**kwargs` may hide it."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    return handed(site, call).get(name, defaults(site.node).get(name))


def _parameter(project: Project, module: SourceModule, value: ast.expr) -> tuple[FunctionSite, str] | None:
    """The function and the parameter that a name stands for, or a field of `self` that the constructor gives it."""
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        function = _function_of(module, bound[0]) if len(bound) == 1 and bound[0].parameter else None
        return (FunctionSite(module, function), value.id) if function is not None else None
    owner = module.class_of(value)
    if not isinstance(value, ast.Attribute) or owner is None:
        return None
    if not isinstance(value.value, ast.Name) or value.value.id != "self":
        return None
    given = class_values(project, class_facts(project, module, owner)).given.get(value.attr, [])
    if len(given) != 1 or not isinstance(given[0].value, ast.Name):
        return None
    found = _parameter(project, given[0].site.module, given[0].value)
    return found if found is not None and found[0].node.name == "__init__" else None


def _function_of(module: SourceModule, bound: Binding) -> FunctionNode | None:
    above = module.ancestors(bound.node)
    return next((up for up in above if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
