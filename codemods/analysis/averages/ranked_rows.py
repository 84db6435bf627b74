"""Does a function of the project rank all rows that it is given by their scores, as an average precision and an AUC do?

A curve over the ranked rows of one rank is none over those of all: the rows of the others stand between them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.kept_counters import class_asked
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassFacts, class_facts
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.logged_values import Scope, classify
from codemods.analysis.logged.value_kinds import Kind
from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule, called_name, walk, walk_scope
from codemods.store.project import Project

_CALLS = 2
_SORTS = frozenset({"argsort", "sort", "sorted"})
_FILLERS = frozenset({"append", "extend", "add", "update"})


def ranks_all_rows(project: Project, module: SourceModule, call: ast.Call, function: FunctionNode) -> bool:
    """True where the call hands over what the steps gathered on this rank, and all of that is ranked together."""
    found = _reached(project, module, call)
    if found is None or any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(call)):
        return False
    owner = module.class_of(function)
    scope = Scope(project, class_facts(project, module, owner) if owner is not None else None, module, function)
    given = _arguments(found, call)
    rows = {name for name, node in given.items() if classify(scope, node).kind is Kind.LIST}
    return bool(rows) and _ranks(project, *found, rows, _CALLS)


def _reached(project: Project, module: SourceModule, call: ast.Call) -> tuple[SourceModule, FunctionNode] | None:
    site = called_function(project, module, call)
    if site is not None:
        return (site.module, site.node) if site.node.name != "__init__" else None
    facts: ClassFacts | None = class_asked(project, module, call.func.value) if isinstance(call.func, ast.Attribute) else None
    method = facts.method(call.func.attr) if facts is not None and isinstance(call.func, ast.Attribute) else None
    return (method[0].module, method[1]) if method is not None else None


def _arguments(found: tuple[SourceModule, FunctionNode], call: ast.Call) -> dict[str, ast.expr]:
    return arguments_of(call, found[1], skip_self=isinstance(found[0].parent(found[1]), ast.ClassDef))


def _ranks(project: Project, module: SourceModule, function: FunctionNode, rows: set[str], calls: int) -> bool:
    """rows: the parameters that hold them."""
    data = _made_of(function, rows)
    nodes = [n for n in walk_scope(function) if isinstance(n, ast.Call) and not _is_for_each(module, n, function, data)]
    sorts = any(called_name(n) in _SORTS and _names(n) & data for n in nodes)
    if sorts and any(_adds_up(module, n) and _names(n) & data for n in nodes):
        return True
    for node in nodes if calls else ():
        found = _reached(project, module, node) if _names(node) & data else None
        if found is None or found[1] is function:
            continue
        inner = {name for name, part in _arguments(found, node).items() if _names(part) & data}
        if inner and _ranks(project, *found, inner, calls - 1):
            return True
    return False


def _is_for_each(module: SourceModule, node: ast.AST, function: FunctionNode, data: set[str]) -> bool:
    """True in a loop over rows, or over what they name, where a part of them is looked at alone: each query may have a curve
    of its own, whose mean is a mean. Not in one over the classes or thresholds of the settings."""
    for up in module.ancestors(node):
        if up is function:
            return False
        over = [up.iter] if isinstance(up, (ast.For, ast.AsyncFor)) else [g.iter for g in getattr(up, "generators", ())]
        if isinstance(up, ast.While) or any(_names(part) & data for part in over):
            return True
    return False


def _adds_up(module: SourceModule, call: ast.Call) -> bool:
    """`np.cumsum(x)` and `x.cumsum(0)`, over all rows: along another dimension each row stands for itself."""
    if called_name(call) != "cumsum":
        return False
    of_package = qualified(module, call.func) in ("numpy.cumsum", "torch.cumsum")
    along = [*call.args[1 if of_package else 0 :], *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
    return all(isinstance(a, ast.Constant) and a.value == 0 for a in along[:1])


def _made_of(function: FunctionNode, rows: set[str]) -> set[str]:
    """The names that hold rows, or something made of them."""
    out = set(rows)
    while True:
        found = {name for name, value in _given(function) if name not in out and _names(value) & out}
        if not found:
            return out
        out |= found


def _given(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    for node in walk_scope(function):
        if isinstance(node, ast.Assign):
            yield from ((name, node.value) for target in node.targets for name in _targets(target))
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            yield from ((name, node.value) for name in _targets(node.target))
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield from ((name, node.iter) for name in _targets(node.target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLERS:
            yield from ((name, part) for name in _targets(node.func.value) for part in node.args)


def _targets(node: ast.expr) -> list[str]:
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for part in node.elts for name in _targets(part)]
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return [node.id] if isinstance(node, ast.Name) else []


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}
