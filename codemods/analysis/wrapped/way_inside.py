"""How the model inside a wrapper is written at a place: `accelerator.unwrap_model(model)`, `model.module`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.made_models import classes_of, has_attribute
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def way_inside(project: Project, module: SourceModule, node: ast.AST, wrapped: Wrapped, receiver: str) -> tuple[str, str]:
    """(the expression, why it cannot be written without a look). The expression is "" where no name leads there."""
    if not wrapped.prepared:
        if wrapped.always and not wrapped.many:
            return f"{receiver}.module", ""
        own = any(has_attribute(project, facts, "module") for facts in classes_of(project, wrapped.module, wrapped.model))
        if own:
            return "", "the model has a `module` of its own, and is wrapped on some ways only: ask by `isinstance`"
        return f'getattr({receiver}, "module", {receiver})', ""  # wrapped on some ways only: a bare model is given as it is
    func = wrapped.wrap.func
    owner = dotted(func.value) if isinstance(func, ast.Attribute) else ""
    if not owner:
        return "", "the Accelerator has no name here"
    inside = f"{owner}.unwrap_model({receiver})"
    if _is_visible(module, node, wrapped, owner):
        return inside, ""
    return inside, f"`{owner}` of {wrapped.module.path}:{wrapped.wrap.lineno} has to be handed on to here"


def _is_visible(module: SourceModule, node: ast.AST, wrapped: Wrapped, owner: str) -> bool:
    root = owner.partition(".")[0]
    if root in ("self", "cls"):
        here, there = module.method_of(node), wrapped.module.method_of(wrapped.wrap)
        return module is wrapped.module and here is not None and there is not None and here[0] is there[0]
    if module is not wrapped.module:
        return False
    scope: FunctionNode | None = module.function_of(node)
    home = module.function_of(wrapped.wrap)
    while scope is not None:
        if bindings_in(module, scope, root):
            return scope is home or root == owner == "accelerator"
        scope = module.function_of(scope)
    return bool(bindings_in(module, None, root)) or root in module.imports
