"""What an object that holds a LightningModule logs: its parameters are what the hooks of the module hand in."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.held_entries import callers_of
from codemods.analysis.logged.held_modules import Held
from codemods.analysis.logged.logged_values import Scope
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

CALLERS_DEEP = 3


def held_scope(scope: Scope, held: Held) -> Scope:
    """The scope of the object's method, with what its callers hand in."""
    if held.facts is not None:
        scope.budget.module = (held.receiver, held.facts)
    return _filled(scope, 0)


def _filled(scope: Scope, depth: int) -> Scope:
    """A function's parameters are filled from its callers; a hook's own are what the framework hands in."""
    function = scope.function
    if function is None or depth >= CALLERS_DEEP:
        return scope
    given: dict[str, tuple[tuple[Scope, ast.expr], ...]] = {}
    for caller in callers_of(scope.project, scope.module, function):
        facts = class_facts(scope.project, caller.site.module, caller.site.node)
        outer = scope.inside(caller.site.module, caller.function, facts)
        if not (facts.is_a(Role.LIGHTNING_MODULE) or facts.is_a(Role.LIGHTNING_CALLBACK)):
            outer = _filled(outer, depth + 1)
        for name, node in _handed(scope.module, function, caller.call).items():
            given[name] = (*given.get(name, ()), *((outer, part) for part in node))
    return scope.inside(scope.module, function, scope.facts, given)


def _handed(module: SourceModule, function: FunctionNode, call: ast.Call) -> dict[str, list[ast.expr]]:
    """Parameter -> what the call hands in for it; any of its arguments where a star hides which."""
    method = isinstance(module.parent(function), ast.ClassDef)
    found = arguments_of(call, function, skip_self=method)
    if found or not call.args:
        return {name: [node] for name, node in found.items()}
    everything = [a.value if isinstance(a, ast.Starred) else a for a in call.args]
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if method else 0 :]
    return dict.fromkeys(names, everything)


def seen_to_differ(project: Project, module: SourceModule, call: ast.Call, value: ast.expr | None) -> str:
    """How the data of a rank come to the value that a call logs, "" where that is not seen."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if not any(node is value for node in given) or value is None:
        return ""
    found = variance(project).value(module, value)
    if not found.differs or found.cause is not Cause.DATA or found.origin is None:
        return ""
    return f"made of this rank's data ({found.origin.path}:{found.origin.line})"
