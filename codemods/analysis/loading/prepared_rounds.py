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
    if isinstance(loader, ast.Subscript):
        return _is_prepared_entry(project, module, loader, at)
    held = held_loaders(module, loader) if isinstance(loader, ast.Name) else []
    if held:
        return all(is_prepared_above(module, each, at) or _prepares_one(project, module, each) for each in held)
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


def _is_prepared_entry(project: Project, module: SourceModule, entry: ast.Subscript, at: ast.AST) -> bool:
    """True for `loaders[name]`, where each entry is what `prepare` makes of a loader when the name is last bound above."""
    name, line = dotted(entry.value), getattr(at, "lineno", 0)
    same = [a for a in module.nodes(ast.Assign) if a.lineno < line and module.function_of(a) is module.function_of(at)]
    made = max((a for a in same if any(dotted(t) == name for t in a.targets)), key=_place, default=None)
    if not name or made is None:
        return False
    puts = [a for a in same if _place(a) > _place(made) and any(_is_entry(t, name) for t in a.targets)]
    if isinstance(made.value, ast.DictComp):
        values = [made.value.value]
    elif isinstance(made.value, ast.ListComp):
        values = [made.value.elt]
    else:
        values = [*made.value.values] if isinstance(made.value, ast.Dict) and all(made.value.keys) else []
        if not values and not isinstance(made.value, ast.Dict):
            return False
    values += [a.value for a in puts]
    return bool(values) and all(_prepares_one(project, module, v) for v in values)


def _place(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_entry(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and dotted(target.value) == name


def _prepares_one(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `accelerator.prepare(loader)`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or len(value.args) != 1:
        return False
    return value.func.attr in ("prepare", "prepare_data_loader") and is_accelerator(project, module, value.func.value)


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
