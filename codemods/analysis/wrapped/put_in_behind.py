"""Layers with parameters that are put into a model behind the DDP wrap, and trained: the wrapper does not know them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.arms import are_other_arms
from codemods.analysis.wrapped.left_out import is_network
from codemods.analysis.wrapped.wraps import Held, Side, held, without_moves, wraps_in
from codemods.files.source import SourceModule, stands_above, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OPTIMIZER = lazy(r"(?:optim|adam|sgd|lamb\b|rmsprop|adagrad)", re.I)


def put_in_behind(project: Project, module: SourceModule) -> Iterator[tuple[ast.Assign, Held]]:
    """`model.module.head = nn.Linear(…)` below `model = DDP(net)` in one function, in front of the optimizer of the model."""
    wraps = wraps_in(module)
    for assign in module.nodes(ast.Assign) if wraps else ():
        target = assign.targets[0]
        wrapper = _wrapper(target) if len(assign.targets) == 1 else None
        if wrapper is None or not isinstance(target, ast.Attribute):
            continue
        function = module.function_of(assign)
        near = [w for w in wraps if module.function_of(w) is function]
        above = [w for w in near if stands_above(w, assign) and not are_other_arms(module, w, assign)]
        if not above or len(above) != len(near) or not _makes_layers(project, module, assign):
            continue  # it is wrapped again below, or not here
        found = held(project, module, wrapper)
        if found is not None and found.side is Side.WRAPPER and found.wrap in above and not _is_frozen(module, target):
            if _optimizer_below(module, assign, dotted(wrapper)):
                yield assign, found


def _wrapper(target: ast.expr) -> ast.expr | None:
    """`model` of `model.module.head`."""
    node = target.value if isinstance(target, ast.Attribute) else None
    while isinstance(node, ast.Attribute):
        if node.attr == "module":
            return node.value if dotted(node.value) not in ("", "self") else None
        node = node.value
    return None


def _makes_layers(project: Project, module: SourceModule, assign: ast.Assign) -> bool:
    value = without_moves(assign.value)
    if isinstance(value, ast.Name):
        bound = bindings_in(module, module.function_of(assign), value.id)
        if len(bound) != 1 or bound[0].value is None or bound[0].part:
            return False
        value = without_moves(bound[0].value)
    return isinstance(value, ast.Call) and is_network(project, module, value)


def _is_frozen(module: SourceModule, target: ast.Attribute) -> bool:
    """True where the function switches the gradients of something of this name off."""
    function = module.function_of(target)
    for node in walk(function if function is not None else module.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("requires_grad", "requires_grad_"):
            lines = [module.text_of(up.iter) for up in module.ancestors(node) if isinstance(up, ast.For)]
            if any(target.attr in text for text in (dotted(node), *lines)):
                return True
    return False


def _optimizer_below(module: SourceModule, assign: ast.Assign, wrapper: str) -> bool:
    """True where an optimizer is made of the wrapped model's parameters below: it trains the new layer."""
    function = module.function_of(assign)
    for call in walk(function if function is not None else module.tree):
        if isinstance(call, ast.Call) and stands_above(assign, call) and _OPTIMIZER.search(last(dotted(call.func))):
            given = (n for a in (*call.args, *(k.value for k in call.keywords)) for n in walk(a))
            if any(dotted(n) == wrapper for n in given if isinstance(n, (ast.Name, ast.Attribute))):
                return True
    return False
