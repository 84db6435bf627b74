"""Functions that make a loader and are asked by a caller to let it shuffle: `loader_of(train_set, shuffle=True)`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.literals import is_true
from codemods.analysis.loading.origins import handed_over
from codemods.analysis.model.signatures import bind, defaults, is_bound
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def is_asked_to_shuffle(
    project: Project, module: SourceModule, loader: ast.Call, wish: ast.Name, deciding: set[str]
) -> bool:
    """True where the wish is a parameter that the function keeps as it is, and a caller writes True out for it.

    A caller under a test of anything but what it hands over may be one that is never met where there is a sampler, and so may
    one that writes out what a parameter is that decides over the sampler.
    """
    function, bound = module.function_of(loader), bindings_of(module, wish)
    if function is None or len(bound) != 1 or not bound[0].parameter or module.function_of(bound[0].node) is not function:
        return False
    given = list(handed_over(project, module, function, wish.id))
    asks = [(there, _call_of(there, value)) for there, value in given if value is not None and is_true(value)]
    return any(
        call is not None and not _is_told(module, function, call, deciding) and _is_met(there, call) for there, call in asks
    )


def _call_of(module: SourceModule, value: ast.expr) -> ast.Call | None:
    """None for a default: which callers leave it out is not asked."""
    up = module.parent(value)
    up = module.parent(up) if isinstance(up, ast.keyword) else up
    return up if isinstance(up, ast.Call) else None


def _is_told(module: SourceModule, function: FunctionNode, call: ast.Call, deciding: set[str]) -> bool:
    given = bind(function, call, bound=is_bound(module, function))
    if given is None:
        return True
    told = defaults(function) | given
    return any(isinstance(told.get(name), ast.Constant) for name in deciding)


def _is_met(module: SourceModule, call: ast.Call) -> bool:
    handed = {dotted(node) for node in walk(call)} - {""}
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return not _ends_above(module, up, call)
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and not _names(up.test) <= handed:
            return False
    return True


def _ends_above(module: SourceModule, function: ast.AST, call: ast.Call) -> bool:
    """True where the function may end in front of the call."""
    return any(isinstance(n, ast.Return) and n.lineno < call.lineno for n in walk(function))


def _names(test: ast.expr) -> set[str]:
    return {dotted(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))} - {"", "self"}
