"""Methods that put into a parameter what is followed to the rank's own batch, whatever else they reduce."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import Analysis, variance
from codemods.analysis.variance.values import Cause, Link
from codemods.analysis.wrapped.forward_methods import methods_of_forward
from codemods.analysis.wrapped.own_batches import assigned_parameter, changes_in, parameters_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_FILLS = frozenset({"copy_", "set_", "index_copy_", "masked_scatter_", "index_fill_"})
_SHARES = lazy(r"reduce|gather|broadcast|sync|distrib|_fn$")
_OWN = lazy(r"queue|bank|memory|cache|hidden|state")  # what a rank may keep for itself


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
        found = found or _of_input(analysis, module, owner, names)
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


def _of_input(analysis: Analysis, module: SourceModule, owner: ast.ClassDef, names: set[str]) -> FollowedState | None:
    """A statement that `forward` comes to and that is made of its input, which is the batch of the rank."""
    for function in methods_of_forward(analysis.project, module, owner):
        site = FunctionSite(module, function)
        state = analysis.of(site) if _is_plain(function, names) else None
        for node, name in changes_in(function, dict.fromkeys(names, True)) if state is not None else ():
            given, _ = _given(node, names)
            value = state.values.get(id(given)) if state is not None and given is not None else None
            inputs = {p for p in value.params if "." not in p} if value is not None else set()
            if value is None or not inputs or value.length or analysis.resolved(site, value).cause is Cause.SAME:
                continue
            text = f"`{sorted(inputs)[0]}` comes from the input of the forward, which is this rank's batch"
            return FollowedState(owner, node, name, (*value.chain, Link(module.path, function.lineno, text)))
    return None


def _is_plain(function: FunctionNode, names: set[str]) -> bool:
    """True for a function that calls nothing but torch and methods of tensors: nothing that might be shared unseen."""
    for call in (n for n in walk_scope(function) if isinstance(n, ast.Call)):
        name = dotted(call.func)
        shares = _SHARES.search(last(name) or getattr(call.func, "attr", ""))
        own = name.startswith("self.") and name.split(".")[1] not in names
        if shares or own or (name and "." not in name and name not in ("len", "int", "max", "min", "range")):
            return False
    return True


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
