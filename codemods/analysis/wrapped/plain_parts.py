"""Objects that a model keeps and that have no parameters: schedules, tokenizers, configurations."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.wrapped.losses import Behind
from codemods.project import Project


def is_plain_part(project: Project, each: Behind, inside: ast.expr) -> bool:
    """True for a method of an object that the module keeps and that is no module: a schedule, a tokenizer, a configuration.

    `ddp.module.schedule.at(t)` runs no parameter where every class of the project that has the method is a plain class.
    """
    func = each.call.func
    if not isinstance(func, ast.Attribute) or func.value is inside or not isinstance(func.value, ast.Attribute):
        return False
    places = project.memo(("methods of plain classes", func.attr), lambda: _classes_with(project, func.attr))
    return bool(places) and not any(places)


def _classes_with(project: Project, method: str) -> list[bool]:
    """For each class of the project that has a method of this name: whether it is, or may be, a module."""
    found: list[bool] = []
    for path in project.files_containing(f"def {method}(".encode()):
        module = project.module(path)
        for node in module.nodes(ast.ClassDef) if module is not None else ():
            if module is not None and method in module.methods_of(node):
                facts = class_facts(project, module, node)
                found.append(bool(facts.unresolved) or bool(facts.external))
    return found
