"""Does a loop go through a loader that Accelerate has prepared? In its function, in its class, or by who calls it."""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.handed import handed
from codemods.analysis.loading.held_loaders import held_loaders
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.schedules import is_prepared_above
from codemods.files.source import SourceModule
from codemods.store.project import Project

_CALLS = 2  # of functions that hand the loader on


def is_prepared(project: Project, module: SourceModule, loader: ast.expr, at: ast.AST, depth: int = 0) -> bool:
    """True for a loader of `at` that a `prepare` gives back, and for a parameter that one call at least hands such a one."""
    if is_prepared_above(module, loader, at):
        return True
    if isinstance(loader, ast.Attribute):
        return _is_prepared_field(project, module, loader, at)
    held = held_loaders(module, loader) if isinstance(loader, ast.Name) else []
    if held:
        return all(is_prepared_above(module, each, at) for each in held)
    function = module.function_of(at)
    if not isinstance(loader, ast.Name) or function is None or depth >= _CALLS:
        return False
    bound = bindings_in(module, function, loader.id)
    if len(bound) != 1 or not bound[0].parameter:
        return False
    site = FunctionSite(module, function)
    for use in uses_of(project, module, function).outside_tests().calls:
        given = handed(site, use.call).get(loader.id)
        if given is not None and is_prepared(project, use.module, given, use.call, depth + 1):
            return True
    return False


def _is_prepared_field(project: Project, module: SourceModule, field: ast.Attribute, at: ast.AST) -> bool:
    """True for `self.loader` that a method of the class gives what `prepare` makes of it."""
    name, owner = dotted(field), module.class_of(at)
    if owner is None or not name.startswith("self."):
        return False
    for assign in module.nodes(ast.Assign):
        call = assign.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "prepare":
            continue
        targets = [e for t in assign.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        if any(dotted(t) == name for t in targets) and module.class_of(assign) is owner:
            return is_accelerator(project, module, call.func.value)
    return False
