"""Is a module made in a place that no option leaves out?"""

from __future__ import annotations

import ast

from codemods.analysis.model.signatures import defaults
from codemods.analysis.ranks.uses import constructions
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_made(project: Project, module: SourceModule, owner: ast.ClassDef) -> bool:
    """True where the class, or an heir, is made or handed on in a place that no test decides over."""
    made = constructions(project, module, owner)
    if made is None:
        return True
    used = made.outside_tests()
    places = [(c.module, c.call) for c in used.calls] + [(h.module, h.node) for h in used.handed_on]
    return any(not _is_under_a_test(there, node) for there, node in places)


def _is_under_a_test(module: SourceModule, node: ast.AST) -> bool:
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            if not any(s is below for s in body) or not _is_the_default(module, up.test):
                return True
        below = up
    return False


def _is_the_default(module: SourceModule, test: ast.expr) -> bool:
    """True for `if kind == "ema":` and `if ema:` in a function that has it so unless it is told otherwise."""
    function = module.function_of(test)
    if function is None:
        return False
    wanted: object = True
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        value = test.comparators[0]
        wanted, test = value.value if isinstance(value, ast.Constant) else None, test.left
    default = defaults(function).get(test.id) if isinstance(test, ast.Name) else None
    return isinstance(default, ast.Constant) and wanted is not None and default.value == wanted
