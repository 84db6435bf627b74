"""Methods that put into a parameter what is followed to the rank's own batch, whoever calls them, and whatever else they reduce."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.values import Cause, Link
from codemods.analysis.wrapped.own_batches import assigned_parameter, parameters_of
from codemods.late_pattern import late
from codemods.project import Project
from codemods.record import record
from codemods.source import FunctionNode, SourceModule, walk_scope

_FILLS = frozenset({"copy_", "set_", "index_copy_", "masked_scatter_", "index_fill_"})
_OWN = late(r"queue|bank|memory|cache|hidden|state")  # what a rank may keep for itself


@record
class FollowedState:
    """A statement of a class that gives the parameter `name` what comes from the own batch, along `way`."""

    owner: ast.ClassDef
    node: ast.stmt
    name: str
    way: tuple[Link, ...]


def followed_states(project: Project, module: SourceModule) -> Iterator[FollowedState]:
    """One for each class of the file."""
    analysis = variance(project)
    for owner in module.nodes(ast.ClassDef):
        names = {n for n in parameters_of(owner) if not _OWN.search(n.lower())}
        if not names or not class_facts(project, module, owner).is_a(Role.NN_MODULE) or not analysis.is_parallel(module):
            continue
        methods = [s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name != "__init__"]
        found = next((f for method in methods for f in _in_method(analysis, module, owner, method, names)), None)
        if found is not None:
            yield found


def _in_method(
    analysis: Analysis, module: SourceModule, owner: ast.ClassDef, method: FunctionNode, names: set[str]
) -> Iterator[FollowedState]:
    for node in walk_scope(method):
        given, name = _given(node, names)
        if given is None or not isinstance(node, ast.stmt):
            continue
        value = analysis.value(module, given)
        if value.differs and value.cause is Cause.DATA and value.origin is not None and not value.origin.by_name:
            yield FollowedState(owner, node, name, value.chain)


def _given(node: ast.AST, names: set[str]) -> tuple[ast.expr | None, str]:
    """What a statement puts into one of the parameters, and its name."""
    if isinstance(node, ast.Assign):
        name = assigned_parameter(node.targets[0], names)
        return (node.value, name) if name else (None, "")
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS and call.args:
        held = call.func.value
        name = last(dotted(held).removesuffix(".data")) if dotted(held).startswith("self.") else assigned_parameter(held, names)
        return (call.args[-1], name) if name in names else (None, "")
    return None, ""
