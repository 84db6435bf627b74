"""Which statements change an object that a name stands for, in a function and in those that it is handed to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handed import handed
from codemods.files.source import SourceModule, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_CHANGING = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft", "extendleft", "pop", "popitem",
                       "popleft", "remove", "discard", "clear", "sort", "reverse", "fill", "resize", "itemset"})  # fmt: skip
_DEPTH = 4


@record
class Change:
    """Where an object is changed: the call or the assignment."""

    module: SourceModule
    node: ast.AST


def root_of(node: ast.AST) -> ast.Name | None:
    """The name under `a["x"][0]`: what is changed with it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def change_of(project: Project, site: FunctionSite, name: str, depth: int = _DEPTH) -> Change | None:
    """Where a function changes what its parameter holds, by itself or in a function that it hands it to."""
    bound = [b for b in bindings_in(site.module, site.node, name) if not isinstance(b.node, ast.AugAssign)]
    if depth < 0 or len(bound) > 1:
        return None
    for node in walk_scope(site.node):
        if changes_itself(node, name):
            return Change(site.module, node)
    for node in walk_scope(site.node):
        if isinstance(node, ast.Call):
            for further, parameter in handed_to(project, site.module, node, name):
                if (found := change_of(project, further, parameter, depth - 1)) is not None:
                    return found
    return None


def changes_itself(node: ast.AST, name: str) -> bool:
    """True for `name.append(x)`, `name["a"].append(x)`, `name["a"] = x` and `name += x`."""
    if isinstance(node, ast.Call):
        func = node.func
        return isinstance(func, ast.Attribute) and func.attr in _CHANGING and _is_of(root_of(func.value), name)
    if isinstance(node, ast.AugAssign):
        return _is_of(root_of(node.target), name)
    targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
    parts = (n for t in targets for n in ((t,) if not isinstance(t, (ast.Tuple, ast.List)) else t.elts))
    return any(isinstance(t, ast.Subscript) and _is_of(root_of(t), name) for t in parts)


def handed_to(project: Project, module: SourceModule, call: ast.Call, name: str) -> Iterator[tuple[FunctionSite, str]]:
    """The project's function that a call hands the object to, with the parameter that holds it there."""
    if not any(_is_of(a, name) for a in (*call.args, *(k.value for k in call.keywords))):
        return
    site = called_function(project, module, call)
    for parameter, value in handed(site, call).items() if site is not None else ():
        if site is not None and _is_of(value, name):
            yield site, parameter


def _is_of(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
