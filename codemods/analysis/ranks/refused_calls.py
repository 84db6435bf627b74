"""Calls that raise TypeError in every run: of a function or class of the project, with arguments that it does not take."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.model.signatures import takes
from codemods.files.source import FunctionNode, SourceModule, once_a_module, walk_scope
from codemods.store.project import Project

# What may give a class another constructor than the one that is written in it.
_MAKERS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.alias)


def is_refused(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call by name that raises TypeError in every run: it gives a parameter that is not there, or leaves one out."""
    if not isinstance(call.func, ast.Name) or _is_rebound(module, call.func):
        return False
    found = _meant(project, module, call.func)
    return found is not None and not takes(found[0], call, bound=found[1])


def plain_function(project: Project, module: SourceModule, call: ast.Call) -> tuple[SourceModule, FunctionNode] | None:
    """The function of the project that a call by name surely runs, from its first line on: no decorator, no generator."""
    if not isinstance(call.func, ast.Name) or _is_rebound(module, call.func):
        return None
    found = find_function(project, module, call.func, call.func)
    if found is None or isinstance(found[1], ast.AsyncFunctionDef) or found[1].decorator_list:
        return None
    site, function = found
    if site.class_of(function) is not None or not _is_only(site, function):
        return None
    waits = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk_scope(function))
    return None if waits else (site, function)


def _is_rebound(module: SourceModule, name: ast.Name) -> bool:
    """True where an assignment, a parameter or a second definition may stand behind the name."""
    bound = bindings_of(module, name)
    if len(module.imports.get(name.id, ())) + len(bound) > 1:
        return True
    return any(not isinstance(b.node, _DEFINES) for b in bound)


def _meant(project: Project, module: SourceModule, name: ast.Name) -> tuple[FunctionNode, bool] | None:
    """The one function that the call runs, and whether it is given `self`."""
    made = find_class(project, module, name.id)
    if made is None:
        found = find_function(project, module, name, name)
        if found is None:
            return None
        site, function = found
        plain = not function.decorator_list and _is_only(site, function)
        return (function, False) if plain and site.class_of(function) is None else None
    facts = class_facts(project, made.module, made.node)
    plain = not made.node.decorator_list and not any(k.arg for k in made.node.keywords) and _is_only(made.module, made.node)
    if not plain or facts.unresolved or any(_MAKERS & site.methods().keys() for site in facts.lineage):
        return None
    init = _constructor(facts)
    return (init, True) if init is not None and not init.decorator_list else None


def _constructor(facts: ClassFacts) -> FunctionNode | None:
    """The `__init__` of the class, or the one that it has from the only base of each on the way; None for a library's."""
    for site in facts.lineage:
        if (init := site.methods().get("__init__")) is not None:
            return init
        if len(site.node.bases) != 1 or site.node.decorator_list or site.node.keywords:
            return None
    return None


def _is_only(module: SourceModule, node: FunctionNode | ast.ClassDef) -> bool:
    """True where the file gives that name nothing else, in no branch and by no assignment."""
    defined, stored = _bound_names(module)
    others = [n for n in defined.get(node.name, ()) if n is not node and module.class_of(n) is module.class_of(node)]
    return not others and node.name not in stored and node.name not in module.imports


@once_a_module
def _bound_names(module: SourceModule) -> tuple[dict[str, list[FunctionNode | ast.ClassDef]], frozenset[str]]:
    """The functions and classes of a file by name, and the names that it stores to."""
    nodes: list[FunctionNode | ast.ClassDef] = [*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef)]
    defined: dict[str, list[FunctionNode | ast.ClassDef]] = {}
    for node in (*nodes, *module.nodes(ast.ClassDef)):
        defined.setdefault(node.name, []).append(node)
    return defined, frozenset(n.id for n in module.nodes(ast.Name) if isinstance(n.ctx, ast.Store))
