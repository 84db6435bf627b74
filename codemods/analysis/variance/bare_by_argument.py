"""Losses of a model that the project made without its wrapper: `net = build(ddp=False)`, where `ddp` decides over the wrap.

The backward of such a loss reduces nothing, and waits for nobody.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.model.literal_arguments import is_ruled_out, told
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.wraps import without_moves
from codemods.data.rank_variance import PREPARES, WRAPPERS
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_WRAPS = WRAPPERS | PREPARES | {"DataParallel"}


def is_of_a_bare_model(project: Project, module: SourceModule, backward: ast.Call) -> bool:
    """True where the loss comes of such a model, and of no other call that may run a model."""
    function = module.function_of(backward)
    if function is None or not isinstance(backward.func, ast.Attribute) or isinstance(backward.func.value, ast.Attribute):
        return False
    bare = _bare_names(project, module, function)
    return bool(bare) and _Way(project, module, function, bare).leads(backward.func.value) is True


def _bare_names(project: Project, module: SourceModule, function: FunctionNode) -> frozenset[str]:
    """The names of a function whose every value is a model without a wrapper."""
    made: dict[str, bool] = {}
    for node in walk_scope(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            call = without_moves(node.value)
            made[name] = made.get(name, True) and isinstance(call, ast.Call) and _makes_bare(project, module, call)
    return frozenset(
        name for name, bare in made.items()
        if bare and all(isinstance(b.node, ast.Assign) and not b.part for b in bindings_in(module, function, name))
    )  # fmt: skip


def _makes_bare(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True where a literal of this very call switches off each wrap of the function that it runs."""
    if not call.args and not call.keywords:
        return False
    site = called_function(project, module, call)
    if site is None:
        return False
    given = told(site.node, call, {}, bound=isinstance(site.module.parent(site.node), ast.ClassDef))
    calls = [n for n in walk(site.node) if isinstance(n, ast.Call)]
    run = [c for c in calls if not is_ruled_out(site.module, c, given)]
    return len(run) < len(calls) and any(_is_wrap(c) for c in calls) and not any(_may_wrap(project, site, c) for c in run)


def _is_wrap(call: ast.Call) -> bool:
    return last(dotted(call.func)) in _WRAPS


def _may_wrap(project: Project, site: FunctionSite, call: ast.Call) -> bool:
    if _is_wrap(call):
        return True
    inner = called_function(project, site.module, call)
    return inner is not None and any(isinstance(n, ast.Call) and _is_wrap(n) for n in walk(inner.node))


class _Way:
    """What the values of one function come of."""

    def __init__(self, project: Project, module: SourceModule, function: FunctionNode, bare: frozenset[str]) -> None:
        self._project, self._module, self._function, self._bare = project, module, function, bare
        self._seen: set[str] = set()
        self._called = {dotted(n.func) for n in walk_scope(function) if isinstance(n, ast.Call)}

    def leads(self, node: ast.expr) -> bool | None:
        """True to a model without a wrapper alone; False to what may be another model; None to no model."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Call):
            return self._call(node)
        return _joined(self.leads(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))

    def _name(self, name: str) -> bool | None:
        if name in self._seen or name in self._bare:
            return None
        self._seen.add(name)
        return _joined(self._bound(b) for b in bindings_in(self._module, self._function, name))

    def _bound(self, binding: Binding) -> bool | None:
        if binding.parameter:
            return None
        if binding.value is not None:
            return self.leads(binding.value)
        if isinstance(binding.node, ast.AugAssign):
            return self.leads(binding.node.value)
        return self.leads(binding.node.iter) if isinstance(binding.node, ast.For) else False

    def _call(self, call: ast.Call) -> bool | None:
        given = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(call.func, ast.Name) and call.func.id in self._bare:
            return True
        if any(isinstance(a, ast.Name) and a.id in self._bare for a in given):
            return not any(self._may_be_model(a) for a in given)
        if called_function(self._project, self._module, call) is not None:
            return False
        inside = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            if call.func.attr != "scale":  # of a GradScaler
                if self._is_handed(call.func.value) or dotted(call.func).startswith("self."):
                    return False
                inside.append(call.func.value)
        elif not isinstance(call.func, ast.Name) or bindings_in(self._module, self._function, call.func.id):
            return False
        return _joined(self.leads(a) for a in inside)

    def _may_be_model(self, node: ast.expr) -> bool:
        name = dotted(node)
        return name not in self._bare and (name in self._called or name.startswith("self."))

    def _is_handed(self, node: ast.expr) -> bool:
        root = dotted(node).partition(".")[0]
        return any(b.parameter for b in bindings_in(self._module, self._function, root))


def _joined(parts: Iterable[bool | None]) -> bool | None:
    found = set(parts)
    return False if False in found else True if True in found else None
