"""The class of the object that a method is asked of, also where an attribute keeps it among others of its class."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.class_index import ClassFacts, ClassSite, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.logged.called_values import arguments_of
from codemods.analysis.logged.held_entries import callers_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Kind
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEPTH = 3
_EMPTY = frozenset({"dict", "list", "OrderedDict", "defaultdict"})
_ELEMENTS = frozenset({"values", "items"})


def class_asked(project: Project, module: SourceModule, holder: ast.expr) -> ClassFacts | None:
    """The class of the object whose method is called: one that is made in sight, that callers hand over, or an attribute's."""
    analysis = variance(project)
    thing = analysis.value(module, holder).thing
    function = module.function_of(holder)
    if thing is None and isinstance(holder, ast.Name) and function is not None:
        thing = analysis.thing_of(module, function, holder.id)
    if thing is not None and thing.kind is Kind.INSTANCE and thing.site is not None:
        return class_facts(project, thing.site.module, thing.site.node)
    return kept_class(project, module, holder)


def kept_class(project: Project, module: SourceModule, holder: ast.expr, depth: int = 0) -> ClassFacts | None:
    """`Counts` for `self.counts`, `self.counts[stage][i]`, and a name or a parameter that holds one of these."""
    if depth > _DEPTH:
        return None
    if isinstance(holder, ast.Name):
        return _of_name(project, module, holder, depth)
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    owner = module.class_of(holder)
    if owner is None or not isinstance(holder, ast.Attribute) or dotted(holder.value) != "self":
        return None
    values = class_values(project, class_facts(project, module, owner))
    kept = [*values.given.get(holder.attr, []), *values.items.get(holder.attr, [])]
    if any(given.part is not None for given in kept):
        return None
    return _one(project, [made for given in kept for made in _made(project, given.site.module, given.value)])


def _of_name(project: Project, module: SourceModule, name: ast.Name, depth: int) -> ClassFacts | None:
    bound = bindings_of(module, name)
    function = module.function_of(name)
    if len(bound) == 1 and bound[0].parameter and function is not None:
        return _handed_over(project, module, function, name.id, depth)
    if len(bound) == 1 and isinstance(bound[0].node, ast.For):
        return _of_loop(project, module, bound[0].node, name, depth)
    value = only_value(bound)
    return kept_class(project, module, value, depth + 1) if value is not None else None


def _of_loop(project: Project, module: SourceModule, loop: ast.For, name: ast.Name, depth: int) -> ClassFacts | None:
    """`for counts in self.kept.values()`, `for stage, counts in self.kept.items()`."""
    over: ast.expr = loop.iter
    end = ""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _ELEMENTS and not over.args:
        end, over = over.func.attr, over.func.value
    target = loop.target
    if end == "items" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    named = isinstance(target, ast.Name) and target.id == name.id
    return kept_class(project, module, over, depth + 1) if named else None


def _handed_over(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> ClassFacts | None:
    """What every caller hands over."""
    own = isinstance(module.parent(function), ast.ClassDef)
    callers = callers_of(project, module, function)
    given = [(c.site.module, arguments_of(c.call, function, skip_self=own).get(name)) for c in callers]
    found = [kept_class(project, place, node, depth + 1) if node is not None else None for place, node in given]
    return _one(project, [facts.lineage[0] if facts is not None else None for facts in found])


def _one(project: Project, found: list[ClassSite | None]) -> ClassFacts | None:
    first = found[0] if found else None
    if first is None or any(site is None or site.node is not first.node for site in found):
        return None
    return class_facts(project, first.module, first.node)


def _made(project: Project, module: SourceModule, value: ast.expr) -> list[ClassSite | None]:
    """The classes of what is put there; None among them for what is not seen to be made of one."""
    if isinstance(value, (ast.Dict, ast.List, ast.Tuple)):
        parts = value.values if isinstance(value, ast.Dict) else value.elts
        return [made for part in parts for made in _made(project, module, part)]
    if isinstance(value, ast.DictComp):
        return _made(project, module, value.value)
    if isinstance(value, ast.ListComp):
        return _made(project, module, value.elt)
    if not isinstance(value, ast.Call):
        return [None]
    if last(dotted(value.func)) in _EMPTY:
        return []
    return [find_class(project, module, dotted(value.func)) if dotted(value.func) else None]
