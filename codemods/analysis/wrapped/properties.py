"""What stands for an attribute of an object: a property of its class, a name that is bound to one of its methods."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule

_KINDS = frozenset({"property", "cached_property"})


def is_property(function: FunctionNode) -> bool:
    return any(last(dotted(d)) in _KINDS for d in function.decorator_list)


def given_by_property(module: SourceModule, node: ast.Attribute) -> ast.expr | None:
    """`self.model.module` for `self.net` of a class with `def net(self): return self.model.module` as a property."""
    owner = module.class_of(node) if dotted(node.value) == "self" else None
    for function in owner.body if owner is not None else ():
        if isinstance(function, ast.FunctionDef) and function.name == node.attr and is_property(function):
            values = returned(function, module)
            return values[0] if len(values) == 1 else None
    return None


def named_method(module: SourceModule, func: ast.expr) -> ast.Attribute | None:
    """`model.module.step` for `step` behind `step = model.module.step`, where the name is bound once."""
    bound = bindings_of(module, func) if isinstance(func, ast.Name) else []
    value = bound[0].value if len(bound) == 1 and not bound[0].part and not bound[0].parameter else None
    return value if isinstance(value, ast.Attribute) and value.attr != "module" else None
