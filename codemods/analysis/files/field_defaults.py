"""What the fields of a class hold where nobody gives them: `path: Path = field(default_factory=lambda: ...)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import class_facts
from codemods.analysis.functions import find_function
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.store.project import Project

_FIELDS = frozenset({"field", "Field", "ib", "attrib"})  # of dataclasses, pydantic and attrs


def field_defaults(project: Project, module: SourceModule, path: ast.expr) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What the bodies of classes put into the fields that a path is made of, as far as it is worked out there.

    For `self.path` the class and its ancestors are asked, for `log.path` the classes of the file.
    """
    made = [path, *(v for n in walk(path) if isinstance(n, ast.Name) for v in assigned(module, n, n.id)[:4])]
    for part in (n for value in made for n in walk(value)):
        if not isinstance(part, ast.Attribute) or not isinstance(part.value, ast.Name):
            continue
        for home, owner in _classes(project, module, part):
            for value in _of_body(owner, part.attr):
                yield from _made_by(project, home, value)


def _classes(project: Project, module: SourceModule, part: ast.Attribute) -> Iterator[tuple[SourceModule, ast.ClassDef]]:
    if dotted(part.value) != "self":
        yield from ((module, owner) for owner in module.nodes(ast.ClassDef))
    elif (own := module.class_of(part)) is not None:
        yield from ((site.module, site.node) for site in class_facts(project, module, own).lineage)


def _of_body(owner: ast.ClassDef, name: str) -> Iterator[ast.expr]:
    for statement in owner.body:
        if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == name and statement.value is not None:
            yield statement.value


def _made_by(project: Project, module: SourceModule, value: ast.expr) -> Iterator[tuple[SourceModule, ast.expr]]:
    """The value itself, or what the function gives that makes it for each object."""
    factory = _factory(value)
    if factory is None:
        yield module, value
    elif isinstance(factory, ast.Lambda):
        yield module, factory.body
    elif (found := find_function(project, module, factory, value)) is not None:
        home, function = found
        yield from ((home, n.value) for n in walk_scope(function) if isinstance(n, ast.Return) and n.value is not None)


def _factory(value: ast.expr) -> ast.expr | None:
    if not isinstance(value, ast.Call) or last(dotted(value.func)) not in _FIELDS:
        return None
    return next((k.value for k in value.keywords if k.arg in ("default_factory", "factory")), None)
