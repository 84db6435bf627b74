"""What functions of the project give for the parts of a path: `stamp_of(args)`, `info["name"]` of an `info = describe(args)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted
from codemods.analysis.paths import origin_text
from codemods.analysis.reaching import reaching
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DEPTH = 3
_MADE = (ast.JoinedStr, ast.BinOp, ast.Call)  # a text that is put together there


def texts_of_functions(project: Project, module: SourceModule, path: ast.expr) -> list[list[str]]:
    """For each function behind a part of the path what it is made from, by its returns; none where one return is not read."""
    found = []
    for call, key in _calls(module, path, _DEPTH):
        site = called_function(project, module, call)
        if site is None or site.node.name == "__init__":
            continue
        given = [_under(site.module, value, key) for value in returned(site.node, site.module)]
        texts = [origin_text(site.module, value) for value in given if value is not None]
        if texts and len(texts) == len(given) and "broadcast" not in site.module.text_of(site.node):
            found.append(texts)
    return found


def _calls(module: SourceModule, node: ast.expr, depth: int) -> Iterator[tuple[ast.Call, str]]:
    """(call, key) for the calls that make a part, and for those whose result is asked for a key."""
    keyed = {id(n.value): n.slice.value for n in (node, *walk(node)) if isinstance(n, ast.Subscript)
             and isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)}  # fmt: skip
    for part in (node, *walk(node)):
        if isinstance(part, ast.Call):
            yield part, keyed.get(id(part), "")
        elif isinstance(part, (ast.Name, ast.Attribute)) and depth > 0 and (name := dotted(part)) and name != "self":
            given = _given(module, part, name)
            key = keyed.get(id(part), "")
            if key and len(given) == 1 and isinstance(given[0], ast.Call):
                yield given[0], key
            elif not key and len(given) == 1:
                yield from _calls(module, given[0], depth - 1)


def _given(module: SourceModule, node: ast.Name | ast.Attribute, name: str) -> list[ast.expr]:
    """The values that the name may hold at its place."""
    if isinstance(node, ast.Attribute):
        return assigned(module, node, name)
    bound = reaching(module, node, bindings_of(module, node))
    return [b.value for b in bound if b.value is not None and not b.parameter and not b.part]


def _under(module: SourceModule, value: ast.expr, key: str) -> ast.expr | None:
    """What is given back, under a key of the dict where one is asked for; None where it is not read."""
    if isinstance(value, ast.Name):
        given = assigned(module, value, value.id)
        value = given[0] if len(given) == 1 else value
    if not key:
        return value if isinstance(value, _MADE) else None
    if not isinstance(value, ast.Dict) or None in value.keys:
        return None
    found = [v for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
    return found[0] if len(found) == 1 else None
