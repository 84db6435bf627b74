"""Places of a data module of Lightning that only the process comes to which ran `prepare_data`: the others end above them."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import takes
from codemods.analysis.names import dotted
from codemods.analysis.positions import above
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_UP = 3


def is_only_where_prepared(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True behind `if self.folder is None: raise` of what `prepare_data` alone sets, in the method or above all calls of it."""
    if not module.holds(b"def prepare_data") or not module.holds(b"raise"):
        return False
    owner, function = module.class_of(node), module.function_of(node)
    if owner is None or function is None or function.name == "prepare_data" or "prepare_data" not in module.methods_of(owner):
        return False
    if not class_facts(project, module, owner).is_a(Role.LIGHTNING_DATA_MODULE):
        return False
    if any(not is_test_file(p) for p in project.files_containing(b".prepare_data(")):
        return False
    return _is_behind(module, owner, function, node, _UP)


def _is_behind(module: SourceModule, owner: ast.ClassDef, function: FunctionNode, node: ast.AST, up: int) -> bool:
    below = node
    for holder in module.ancestors(node):
        if any(_ends_the_others(module, owner, s) for s in above(module, below)):
            return True
        if holder is function:
            break
        below = holder
    calls = [c for c in module.calls_named(function.name) if dotted(c.func) == f"self.{function.name}"]
    fitting = [c for c in calls if takes(function, c, bound=True)]  # another one raises TypeError
    homes = [(module.function_of(c), c) for c in fitting if module.class_of(c) is owner]
    if not homes or len(homes) != len(fitting) or up == 0:
        return False
    return all(home is not None and home is not function and _is_behind(module, owner, home, c, up - 1) for home, c in homes)


def _ends_the_others(module: SourceModule, owner: ast.ClassDef, statement: ast.stmt) -> bool:
    """True for `if self.folder is None: raise …`."""
    if not isinstance(statement, ast.If) or not isinstance(statement.body[-1], ast.Raise):
        return False
    test = statement.test
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0]):
        asked = test.left
    return isinstance(asked, ast.Attribute) and dotted(asked.value) == "self" and _is_set_there_alone(module, asked)


def _is_set_there_alone(module: SourceModule, asked: ast.Attribute) -> bool:
    given = [b for b in attribute_bindings(module, asked) if not is_none(b.value)]
    homes = [module.function_of(b.node) for b in given]
    return bool(homes) and all(home is not None and home.name == "prepare_data" for home in homes)
