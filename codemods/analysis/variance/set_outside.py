"""What others put into the fields of an object: `stopper.trainer = trainer` below `stopper = Stopper()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassSite, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project

_MOST_FILES = 6


def set_outside(project: Project, site: ClassSite, name: str) -> Iterator[tuple[SourceModule, ast.Assign]]:
    """The assignments that give the field `name` of objects of the class a value, where the object is made by a name."""
    given = project.files_containing(f".{name} = ".encode())
    made = project.files_containing(f"{site.node.name}(".encode()) if given else ()
    for path in sorted(p for p in {*made}.intersection(given) if not is_test_file(p))[:_MOST_FILES]:
        module = project.module(path)
        for assign in module.nodes(ast.Assign) if module is not None else ():
            target = assign.targets[0]
            if module is None or not isinstance(target, ast.Attribute) or target.attr != name:
                continue
            if isinstance(target.value, ast.Name) and _is_made(project, module, target.value, site):
                yield module, assign


def _is_made(project: Project, module: SourceModule, name: ast.Name, site: ClassSite) -> bool:
    values = [b.value for b in bindings_of(module, name) if b.value is not None]
    if len(values) != 1 or not isinstance(values[0], ast.Call):
        return False
    made = find_class(project, module, dotted(values[0].func)) if dotted(values[0].func) else None
    return made is not None and made.node is site.node
