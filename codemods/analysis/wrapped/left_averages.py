"""Averages of the weights that are copied into the model that goes on training, and are not taken out again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.wraps import held, is_prepare
from codemods.data.rank_variance import BACKWARDS
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_COPIES = frozenset({"copy_to", "copy_params_to", "apply_shadow"})
_BACK = frozenset({"restore", "store", "copy_back", "collected_params"})
_AVERAGE = lazy(r"ema|averag|shadow|swa")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_UNWRAPS = frozenset({"unwrap_model", "extract_model_from_parallel"})


def averages_left_in(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, str]]:
    """`ema.copy_to(net.parameters())` in a loop that trains `net`, without a `restore`; and the name of the model."""
    for call in module.calls_named(*_COPIES):
        if not isinstance(call.func, ast.Attribute) or not isinstance(module.parent(call), ast.Expr) or not call.args:
            continue
        average = dotted(call.func.value)
        if not _AVERAGE.search(average.lower()) or not _goes_on(module, call) or _is_put_back(module, call, average):
            continue
        model = _model(module, call.args[0])
        if model is not None and held(project, module, model) is not None:
            yield call, dotted(model)


def _goes_on(module: SourceModule, call: ast.Call) -> bool:
    """True in a loop of the same function that makes a backward pass in each round."""
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, _LOOPS) and any(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in BACKWARDS for n in walk(up)
        ):
            return not _leaves_behind(module, call, up)
    return False


def _leaves_behind(module: SourceModule, call: ast.Call, loop: ast.AST) -> bool:
    """True where the block ends the loop behind the call."""
    below: ast.AST = call
    for up in module.ancestors(call):
        for name in ("body", "orelse"):
            block = getattr(up, name, None)
            if isinstance(block, list) and any(s is below for s in block) and isinstance(block[-1], (ast.Break, ast.Return)):
                return True
        if up is loop:
            return False
        below = up
    return False


def _is_put_back(module: SourceModule, call: ast.Call, average: str) -> bool:
    """True where the function keeps the weights of the training first, or puts them back."""
    function = module.function_of(call)
    others = (c for c in module.calls_named(*_BACK) if module.function_of(c) is function)
    return any(isinstance(c.func, ast.Attribute) and dotted(c.func.value) == average for c in others)


def _model(module: SourceModule, given: ast.expr) -> ast.expr | None:
    """`net` of `net.parameters()`, the wrapper behind it where `net` is what was unwrapped."""
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters":
        given = given.func.value
    if not isinstance(given, (ast.Name, ast.Attribute)):
        return None
    if isinstance(given, ast.Name):
        made = (b.value for b in bindings_of(module, given))
        values = [v for v in made if isinstance(v, ast.Call) and not is_prepare(module, v)]
        unwrapped = [v for v in values if last(dotted(v.func)) in _UNWRAPS and v.args and dotted(v.args[0])]
        if len(values) == len(unwrapped) == 1:
            return unwrapped[0].args[0]
    return given
