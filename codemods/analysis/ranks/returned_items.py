"""What stands under a key of a dict that a function of the project gives back: `info = set_up()`, then `info["rank"]`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.call_graph import called_function, may_speak_of_ranks
from codemods.files.source import SourceModule, walk_scope
from codemods.store.project import Project

_FEW = 3  # bindings


def returned_items(project: Project | None, module: SourceModule, node: ast.Subscript) -> list[tuple[SourceModule, ast.expr]]:
    """The values, each with its file; nothing where one of them is not shown."""
    key, held = node.slice, node.value
    if project is None or not isinstance(key, ast.Constant) or not isinstance(held, (ast.Name, ast.Attribute)):
        return []
    found: list[tuple[SourceModule, ast.expr]] = []
    bound = name_or_field_bindings(module, held)
    for one in bound if len(bound) <= _FEW else ():
        if not isinstance(one.value, ast.Call) or one.part or not may_speak_of_ranks(project, module, one.value):
            return []
        site = called_function(project, module, one.value)
        given = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return)] if site is not None else []
        for table in given:
            value = _under(table, key.value) if isinstance(table, ast.Dict) else None
            if site is None or value is None:
                return []
            found.append((site.module, value))
    return found


def _under(table: ast.Dict, key: object) -> ast.expr | None:
    pairs = zip(table.keys, table.values, strict=True)
    return next((value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None)
