"""Objects that a model keeps and that have no parameters: schedules, tokenizers, configurations."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.losses import Behind
from codemods.analysis.wrapped.wraps import is_wrap, without_moves
from codemods.files.source import SourceModule
from codemods.store.project import Project


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


def is_of_plain_class(project: Project, module: SourceModule, model: ast.expr | None) -> bool:
    """True for an object whose every value is made of a class of the project that is no module: DDP does not take it.

    `trainer = Trainer(net)` wrapped as a whole: `.cuda()` and DDP itself end the program there, and nothing below is reached.
    """
    if not isinstance(model, ast.Name):
        return False
    values = (v for v in map(without_moves, assigned(module, model, model.id)) if not is_wrap(module, v))
    calls = [v for v in values if not (isinstance(v, ast.Name) and v.id == model.id)]
    made = [find_class(project, module, dotted(v.func)) if isinstance(v, ast.Call) and dotted(v.func) else None for v in calls]
    return bool(made) and all(s is not None and _is_plain(class_facts(project, s.module, s.node)) for s in made)


def _is_plain(facts: ClassFacts) -> bool:
    if any(b not in ("object", "builtins.object", "abc.ABC", "ABC") for b in facts.external) or facts.unresolved:
        return False
    changed = any(s.node.keywords or s.node.decorator_list for s in facts.lineage)
    return not changed and not any(facts.method(name) for name in ("parameters", "named_parameters", "__getattr__", "__new__"))
