"""What a function, or a field that a base class fills, is handed by others."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.distribution import is_test_module
from codemods.analysis.model.constructor_arguments import given_for
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def callers_of(project: Project, module: SourceModule, function: FunctionNode) -> list[CallSite]:
    """The calls of a function, or of the class that it is the constructor of, outside of tests; none where there are too many."""
    owner = module.parent(function)
    uses = (
        constructions(project, module, owner)
        if isinstance(owner, ast.ClassDef) and function.name == "__init__"
        else uses_of(project, module, function)
    )
    if uses is None or uses.more:
        return []
    return [s for s in uses.calls if not is_test_module(s.module)]


def given_to_base(project: Project, module: SourceModule, node: ast.Attribute) -> list[tuple[SourceModule, ast.expr]]:
    """What is handed over for `self.x` that the constructor of a base class takes (`self.x = x`), and nothing else sets."""
    owner = module.class_of(node) if isinstance(node.value, ast.Name) and node.value.id == "self" else None
    if owner is None or not owner.bases:
        return []
    facts = class_facts(project, module, owner)
    if len(facts.lineage) < 2:
        return []
    values = class_values(project, facts).given.get(node.attr, ())
    if len(values) != 1 or values[0].function is None or values[0].function.name != "__init__":
        return []
    only = values[0]
    if not isinstance(only.value, ast.Name) or only.part is not None:
        return []
    handed = given_for(project, facts, only.site, only.value.id) or ()
    return [(one.module, one.value) for one in handed if one.module is not None and one.value is not None]
