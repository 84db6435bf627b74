"""A logged `self.x` that can only be an object: the class calls it, or nothing says that it is a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, ClassSite
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_bare_object(project: Project, facts: ClassFacts, node: ast.expr) -> bool:
    """True for `self.x` where the class calls `self.x(…)` and has no such method, or where nobody sets it at all.

    Lightning takes numbers, tensors and metrics: what can be called is a metric, which reduces itself. What nobody sets fails
    at this very line, or is a metric that was taken out.
    """
    if not isinstance(node, ast.Attribute) or dotted(node) != f"self.{node.attr}" or facts.method(node.attr):
        return False
    return _is_called(facts, node.attr) or _is_never_set(project, facts, node.attr)


def _is_called(facts: ClassFacts, name: str) -> bool:
    return any(dotted(call.func) == f"self.{name}" for site in facts.lineage for call in _calls(site, name))


def _calls(site: ClassSite, name: str) -> Iterator[ast.Call]:
    yield from (call for call in site.module.calls_named(name) if site.module.class_of(call) is site.node)


def _is_never_set(project: Project, facts: ClassFacts, name: str) -> bool:
    known = class_values(project, facts)
    if known.loose or name in known.given or name in known.items:
        return False
    return not any(_is_stored(m, name, facts) for m in _storing(project, name))


def _storing(project: Project, name: str) -> Iterator[SourceModule]:
    """The files that may set the attribute: each one that writes its name behind a point and an equals sign."""
    words = (f".{name}{end}".encode() for end in (" ", ",", "=", ":"))
    for path in sorted({path for word in words for path in project.files_containing(word)}):
        if (module := project.module(path)) is not None:
            yield module


def _is_stored(module: SourceModule, name: str, facts: ClassFacts) -> bool:
    """True where the class, one of its family or code outside of any class with such a field sets the attribute."""
    for node in module.nodes(ast.Attribute):
        if node.attr != name or not isinstance(node.ctx, ast.Store):
            continue
        owner = module.class_of(node)
        if dotted(node) != f"self.{name}" or owner is None:
            return True
        if facts.lineage[0].name in {last(dotted(b)) for b in owner.bases} or any(owner is s.node for s in facts.lineage):
            return True
    return False
