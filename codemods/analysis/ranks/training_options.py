"""Is an object one of transformers' TrainingArguments? By the class that makes it, or the parser that gives it out."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.parts import place_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

_DEPTH = 4
_MOST = 6  # callers
_PARSES = frozenset({"parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file", "parse_dict"})


def is_training_arguments(project: Project, module: SourceModule, node: ast.expr, depth: int = 0) -> bool:
    """True where every value that a name or a field of `self` is given makes such an object."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Call):
        return _is_class(project, module, node.func)
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        return bool(bound) and all(_is_bound_to_one(project, module, node, b, depth) for b in bound)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        owner = module.class_of(node)
        given = class_values(project, class_facts(project, module, owner)).given.get(node.attr, []) if owner else []
        whole = all(g.part is None for g in given)
        return bool(given) and whole and all(is_training_arguments(project, g.site.module, g.value, depth + 1) for g in given)
    return False


def _is_class(project: Project, module: SourceModule, named: ast.expr) -> bool:
    """True for TrainingArguments, its heirs in transformers and trl, and those of the project."""
    if (site := find_class(project, module, dotted(named)) if dotted(named) else None) is not None:
        return class_facts(project, site.module, site.node).is_a(Role.HF_ARGUMENTS)
    return external_role(qualified(module, named)) is Role.HF_ARGUMENTS


def _is_bound_to_one(project: Project, module: SourceModule, name: ast.Name, bound: Binding, depth: int) -> bool:
    if bound.parameter:
        return _is_handed_one(project, module, name, bound, depth)
    if bound.value is None:
        return False
    if not bound.part:
        return is_training_arguments(project, module, bound.value, depth + 1)
    targets = bound.node.targets[0] if isinstance(bound.node, ast.Assign) else None
    place = place_of(targets, name.id)
    if not isinstance(bound.value, ast.Call) or place is None:
        return False
    classes = _parsed_into(module, bound.value)
    return place < len(classes) and _is_class(project, module, classes[place])


def _is_handed_one(project: Project, module: SourceModule, name: ast.Name, bound: Binding, depth: int) -> bool:
    """By what the parameter is noted as, else by what every caller hands over."""
    note = bound.node.annotation if isinstance(bound.node, ast.arg) else None
    if note is not None:
        return _is_class(project, module, note)
    above = (up for up in module.ancestors(bound.node) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))
    function = next(above, None)
    given = list(arguments(project, module, function, name.id)) if function is not None else []
    return 0 < len(given) <= _MOST and all(is_training_arguments(project, m, v, depth + 1) for m, v in given)


def _parsed_into(module: SourceModule, call: ast.Call) -> list[ast.expr]:
    """The classes of `HfArgumentParser((Model, TrainingArguments))` that the call gives an object of each."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PARSES:
        return []
    parser: ast.expr | None = call.func.value
    if isinstance(parser, ast.Name):
        bound = bindings_of(module, parser)
        parser = bound[0].value if len(bound) == 1 and not bound[0].part else None
    if not isinstance(parser, ast.Call) or not last(qualified(module, parser.func)).endswith("ArgumentParser"):
        return []
    given = parser.args[0] if parser.args else next((k.value for k in parser.keywords if k.arg == "dataclass_types"), None)
    return given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given] if given is not None else []
