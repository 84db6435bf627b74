"""A list that is mixed, and that a function of the project cuts into parts: `train, val = cut(rows, [0.8, 0.2])`."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.cut_in_two import mixes_each_time, names_a_part
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.store.project import Project

_TRAINED = "train"
_ORDERS = frozenset({"sorted", "sort", "shuffle", "permutation", "randperm", "argsort", "unique"})


def cut_by_helper(project: Project, module: SourceModule, call: ast.Call, names: set[str]) -> ast.AST | None:
    """The first call below that cuts one of the names, with what comes out put under names of parts, one of them to train on."""
    function = module.function_of(call)
    if function is None or mixes_each_time(function):
        return None
    for node in sorted((n for n in walk_scope(function) if isinstance(n, ast.Assign)), key=lambda n: n.lineno):
        if node.lineno <= call.lineno:
            continue
        if isinstance(node.value, ast.Call) and _are_parts(node) and _cuts(project, module, node.value, names):
            return node.value
        if any(dotted(t) in names for t in node.targets):
            return None  # others by then
    return None


def _are_parts(given: ast.Assign) -> bool:
    """True for several names, at least two of them of parts, of which one is trained on and another is not."""
    target = given.targets[0]
    if len(given.targets) > 1 or not isinstance(target, (ast.Tuple, ast.List)):
        return False
    named = [dotted(e).rpartition(".")[2].lower() for e in target.elts if names_a_part(e)]
    return any(_TRAINED in n for n in named) and any(_TRAINED not in n for n in named)


def _cuts(project: Project, module: SourceModule, call: ast.Call, names: set[str]) -> bool:
    """True where the function that is called takes slices of what it is handed, and gives it no order of its own."""
    site = called_function(project, module, call)
    given = bind(site.node, call, bound=False) if site is not None else None
    if site is None or given is None:
        return False
    handed = {name for name, value in given.items() if dotted(value) in names}
    return bool(handed) and _slices(site.node, handed) and not _orders(site.node)


def _slices(function: FunctionNode, names: set[str]) -> bool:
    """True for several slices of a parameter, or one in a loop."""
    cuts = (n for n in walk(function) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice))
    found = [n for n in cuts if dotted(n.value) in names]
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.While, ast.ListComp))]
    inside = {id(n) for loop in loops for n in walk(loop)}
    return len(found) > 1 or any(id(n) in inside for n in found)


def _orders(function: FunctionNode) -> bool:
    return any(isinstance(n, ast.Call) and called_name(n) in _ORDERS for n in walk(function))
