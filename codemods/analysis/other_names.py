"""Where the project reads a function or a class under another name: `from a import f as g`, and `g` handed on by a package."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import find_function
from codemods.analysis.class_index import find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import importers
from codemods.analysis.names import dotted, is_parameter
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_MOST_FILES = 25  # that give a thing another name, or get it under one: more of them share the name and not the thing


@record
class Read:
    """A place where a thing is read by another name than its own."""

    module: SourceModule
    node: ast.Name | ast.Attribute

    @property
    def call(self) -> ast.Call | None:
        """The call that it is the function of."""
        up = self.module.parent(self.node)
        return up if isinstance(up, ast.Call) and up.func is self.node else None


def reads_by_other_names(
    project: Project, module: SourceModule, definition: FunctionNode | ast.ClassDef
) -> tuple[Read, ...]:
    """All of them, but for those in the repository's own tests. `definition` stands at the top of `module`."""
    if module.parent(definition) is not module.tree and module.function_of(definition) is not None:
        return ()
    key = ("reads by other names", module.path, definition.lineno, definition.name)
    return project.memo(key, lambda: tuple(_reads(project, definition)))


def _reads(project: Project, definition: FunctionNode | ast.ClassDef) -> Iterator[Read]:
    for path, names in _named(project, definition).items():
        other = project.module(path)
        for name in sorted(names) if other is not None else ():
            assert other is not None
            for node in other.reads_of(name):
                if leads_to(project, other, node, definition):
                    yield Read(other, node)


def _named(project: Project, definition: FunctionNode | ast.ClassDef) -> dict[str, set[str]]:
    """File -> the other names by which it may read the definition: those that it gives it, and those that others hand on."""
    found: dict[str, set[str]] = {}
    seen, queue = {definition.name}, [definition.name]
    while queue:
        for path, name in project.aliases_at(queue.pop()):
            if name == definition.name or is_test_file(path) or (giving := project.module(path)) is None:
                continue
            if name not in giving.imports or not _is(project, giving, name, definition):
                continue
            if name not in seen:
                seen.add(name)
                queue.append(name)
            users = project.files_using(name, most=_MOST_FILES, among=importers(project, path)) or ()
            for user in (path, *(u for u in users if not is_test_file(u))):
                found.setdefault(user, set()).add(name)
    return found


def leads_to(
    project: Project, module: SourceModule, node: ast.expr, definition: FunctionNode | ast.ClassDef
) -> bool:
    """True where a name, or an attribute of an imported module, is this function or class."""
    name = dotted(node)
    return bool(name) and not is_parameter(module, name.partition(".")[0], node) and _is(project, module, name, definition)


def _is(project: Project, module: SourceModule, name: str, definition: FunctionNode | ast.ClassDef) -> bool:
    if isinstance(definition, ast.ClassDef):
        found = find_class(project, module, name)
        return found is not None and found.node is definition
    site = find_function(project, module, name)
    return site is not None and site.node is definition
