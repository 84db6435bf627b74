"""Are the `training_args` that a parser of dataclasses gives transformers' own? A project may parse a class of its own so."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_PARSES = "parse_args_into_dataclasses"
_NAME = "training_args"


def are_parsed_training_arguments(project: Project, module: SourceModule, name: str, call: ast.Call) -> bool:
    """True for what `training_args` is bound to by the parser: the class that stands in its place, else by the name alone."""
    if name != _NAME or last(dotted(call.func)) != _PARSES:
        return False
    classes = _classes(module, call)
    place = _place(module, call, name)
    if classes and place is not None and place < len(classes):
        return _is_of_transformers(project, module, classes[place])
    named = find_class(project, module, "TrainingArguments")
    return named is None or class_facts(project, named.module, named.node).is_a(Role.HF_ARGUMENTS)


def _is_of_transformers(project: Project, module: SourceModule, node: ast.expr) -> bool:
    site = find_class(project, module, dotted(node))
    if site is not None:
        return class_facts(project, site.module, site.node).is_a(Role.HF_ARGUMENTS)
    return external_role(qualified(module, node)) is Role.HF_ARGUMENTS


def _classes(module: SourceModule, call: ast.Call) -> list[ast.expr]:
    """`HfArgumentParser((ModelArguments, TrainingArguments))`: the classes in their order, none where another one made it."""
    parser = call.func.value if isinstance(call.func, ast.Attribute) else None
    made = assigned(module, parser, dotted(parser)) if isinstance(parser, ast.Name) else [parser]
    if len(made) != 1 or not isinstance(made[0], ast.Call) or not made[0].args:
        return []
    given = made[0].args[0]
    return list(given.elts) if isinstance(given, (ast.Tuple, ast.List)) else [given]


def _place(module: SourceModule, call: ast.Call, name: str) -> int | None:
    """Which of the parsed objects has the name."""
    bound = module.parent(call)
    target = bound.targets[0] if isinstance(bound, ast.Assign) else None
    if isinstance(target, ast.Name):
        return 0 if target.id == name else None
    names = [e.id if isinstance(e, ast.Name) else "" for e in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else []
    return names.index(name) if name in names else None
