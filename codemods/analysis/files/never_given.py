"""`if self.file is not None:` of an object that nobody makes with a file: what stands under the test is never done."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import constructions
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule


def is_never_given(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test for a field that keeps the None of the constructor's parameter in all objects that are made."""
    owner, function = module.class_of(node), module.function_of(node)
    init = module.methods_of(owner).get("__init__") if owner is not None else None
    if owner is None or init is None:
        return False
    below: ast.AST = node
    for up in module.ancestors(node):
        if up is function:
            return False
        if isinstance(up, ast.If) and any(s is below for s in up.body):
            field = _asked(up.test)
            if field is not None and _stays_none(project, module, owner, init, field):
                return True
        below = up
    return False


def _asked(test: ast.expr) -> ast.Attribute | None:
    """`self.file` of `if self.file:` and `if self.file is not None:`."""
    none = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and dotted(test.comparators[0]) == ""
    asked = test.left if isinstance(test, ast.Compare) and none else test
    return asked if isinstance(asked, ast.Attribute) and dotted(asked.value) == "self" else None


def _stays_none(
    project: Project, module: SourceModule, owner: ast.ClassDef, init: FunctionNode, field: ast.Attribute
) -> bool:
    bound = attribute_bindings(module, field)
    names = {b.value.id for b in bound if isinstance(b.value, ast.Name) and module.function_of(b.value) is init}
    if len(names) != 1 or len(bound) != 1 or set(project.files_containing(f".{field.attr} = ".encode())) - {module.path}:
        return False
    (name,) = names
    made = constructions(project, module, owner)
    sites = made.outside_tests().calls if made is not None else ()
    given = [bind(init, site.call, bound=True) for site in sites]
    return bool(given) and _default_is_none(init, name) and all(g is not None and name not in g for g in given)


def _default_is_none(function: FunctionNode, name: str) -> bool:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(plain), reversed(arguments.defaults), strict=False),
             *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
    return any(a.arg == name and isinstance(d, ast.Constant) and d.value is None for a, d in pairs)
