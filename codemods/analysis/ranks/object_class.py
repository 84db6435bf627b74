"""The class of the project that an object is of, where every value that its name is given is made from that one class."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.class_index import ClassSite, class_facts, find_class, overriding
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEPTH = 4
_MOST = 6  # callers


def class_of_object(project: Project, module: SourceModule, node: ast.expr, depth: int = 0) -> ClassSite | None:
    """The class that `reports` or `self.reports` holds an object of; None where several are possible, or none is seen."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Call):
        return find_class(project, module, dotted(node.func)) if dotted(node.func) else None
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        found = [_of_binding(project, module, node.id, b, depth) for b in bound]
        return _one(found) if bound else _imported(project, module, node)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return _of_field(project, module, node, depth)
    return None


def answers_of_its_own(project: Project, site: ClassSite, name: str) -> bool:
    """True where no heir of the class has a method of that name: the object may be one's."""
    return overriding(project, site, name) == ()


def _one(found: list[ClassSite | None]) -> ClassSite | None:
    sites = {(s.module.path, s.node.lineno) if s is not None else None: s for s in found}
    return next(iter(sites.values())) if len(sites) == 1 else None


def _of_binding(project: Project, module: SourceModule, name: str, bound: Binding, depth: int) -> ClassSite | None:
    if bound.parameter:
        above = (up for up in module.ancestors(bound.node) if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)))
        function = next(above, None)
        return _of_parameter(project, module, function, name, depth) if function is not None else None
    return class_of_object(project, module, bound.value, depth + 1) if bound.value is not None and not bound.part else None


def _of_parameter(
    project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int
) -> ClassSite | None:
    """By what it is noted as, else by what every caller hands over."""
    named = next((a for a in (*function.args.args, *function.args.kwonlyargs) if a.arg == name), None)
    if named is not None and named.annotation is not None:
        note = named.annotation
        written = note.value if isinstance(note, ast.Constant) and isinstance(note.value, str) else dotted(note)
        return find_class(project, module, written) if written.replace(".", "").isidentifier() else None
    given = list(arguments(project, module, function, name))
    return _one([class_of_object(project, m, v, depth + 1) for m, v in given]) if 0 < len(given) <= _MOST else None


def _of_field(project: Project, module: SourceModule, node: ast.Attribute, depth: int) -> ClassSite | None:
    owner = module.class_of(node)
    if owner is None:
        return None
    given = class_values(project, class_facts(project, module, owner)).given.get(node.attr, [])
    given = [g for g in given if not (isinstance(g.value, ast.Constant) and g.value.value is None)]
    found = [class_of_object(project, g.site.module, g.value, depth + 1) if g.part is None else None for g in given]
    return _one(found)


def _imported(project: Project, module: SourceModule, node: ast.Name) -> ClassSite | None:
    """`from context import context`, which the other file makes at its top."""
    found = []
    for item in module.imports.get(node.id, ()):
        resolved = project.resolve(item.dotted, module.path)
        inner = project.module(resolved.path) if resolved is not None and len(resolved.rest) == 1 else None
        if inner is None or resolved is None:
            return None
        made = [
            a.value for a in inner.nodes(ast.Assign)
            if inner.function_of(a) is None and any(isinstance(t, ast.Name) and t.id == resolved.rest[0] for t in a.targets)
        ]  # fmt: skip
        found += [class_of_object(project, inner, v, _DEPTH) for v in made] or [None]
    return _one(found) if found else None
