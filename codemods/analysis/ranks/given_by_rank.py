"""Objects that a function gives by the rank: `get_logger()` gives rank 0 the real one, and the others one that does nothing."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project


def ranks_of_receiver(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """The ranks on which `get().method()` runs the project's method of that name; ALL where the object is the same for all."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return Ranks.ALL
    made = _made_by(module, node.func.value)
    given = called_function(project, module, made) if made is not None else None
    if given is None:
        return Ranks.ALL
    method = node.func.attr
    key = ("ranks given", given.module.path, given.node.lineno, method)
    return project.keep(key, lambda: _ranks_having(project, given, method))


def _made_by(module: SourceModule, holder: ast.expr) -> ast.Call | None:
    """The call that gives the object: in its place, or bound to the one name that stands there."""
    if isinstance(holder, ast.Name):
        bound = bindings_of(module, holder)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        return value if isinstance(value, ast.Call) else None
    return holder if isinstance(holder, ast.Call) else None


def _ranks_having(project: Project, given: FunctionSite, method: str) -> Ranks:
    having: set[Ranks] = set()
    returns = [n for n in walk_scope(given.node) if isinstance(n, ast.Return)]
    for found in returns:
        has = _has(project, given.module, found.value, method)
        if has is None:
            return Ranks.ALL
        if has:
            having.add(ranks_at(given.module, found, project=project))
    return having.pop() if len(having) == 1 and len(returns) > 1 else Ranks.ALL


def _has(project: Project, module: SourceModule, value: ast.expr | None, method: str) -> bool | None:
    """True where the object's class defines the method; None where its class is not seen."""
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
    site = find_class(project, module, dotted(value.func)) if isinstance(value, ast.Call) and dotted(value.func) else None
    if site is None:
        return None
    facts = class_facts(project, site.module, site.node)
    return None if facts.opaque else facts.method(method) is not None
