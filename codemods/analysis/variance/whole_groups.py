"""`dist.barrier(group=self.group)` of all ranks: nobody hands over a group, and None stands for all of them."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import defaults
from codemods.analysis.ranks.uses import Uses, constructions, uses_of
from codemods.analysis.variance.paths import own_field, parameters, path_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def is_of_all(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a collective whose group is None wherever it comes from."""
    group = next((k.value for k in call.keywords if k.arg in ("group", "process_group")), None)
    if group is None:
        return False
    function = module.function_of(call)
    if isinstance(group, ast.Name) and function is not None and is_none(defaults(function).get(group.id)):
        return _nobody_hands(uses_of(project, module, function), function, group.id)
    owner = module.class_of(call)
    name = own_field(path_of(group))
    if not name or owner is None:
        return False
    facts = class_facts(project, module, owner)
    values = class_values(project, facts)
    given = values.given.get(name, [])
    if not given or not values.set_once(name):
        return False
    return all(is_none(g.value) or _is_left_out(project, g.site.module, g.site.node, g.function, g.value) for g in given)


def _is_left_out(
    project: Project, module: SourceModule, owner: ast.ClassDef, function: FunctionNode | None, value: ast.expr
) -> bool:
    """True for a parameter of the constructor that is None unless somebody hands it over, which nobody does."""
    if not isinstance(value, ast.Name) or function is None or not is_none(defaults(function).get(value.id)):
        return False
    return _nobody_hands(constructions(project, module, owner), function, value.id)


def _nobody_hands(uses: Uses | None, function: FunctionNode, name: str) -> bool:
    if uses is None or uses.handed_on:
        return False
    names = [p for p in parameters(function) if p not in ("self", "cls")]
    calls = [c.call for c in uses.calls]
    given = [k.arg for c in calls for k in c.keywords]
    starred = any(isinstance(a, ast.Starred) for c in calls for a in c.args) or None in given
    return not starred and name not in given and not any(len(c.args) > names.index(name) for c in calls)
