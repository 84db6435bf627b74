"""What `Trainer(**options)` is handed: a dict that is written out in the file, or in the Python settings of the project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project

Options = tuple[SourceModule, dict[str, ast.expr]]  # where they are written, and what they say

_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".ipynb")


def options_of(project: Project, module: SourceModule, packed: list[ast.expr]) -> list[Options]:
    """What the call is handed on each way, of dicts that stay as they are written; else nothing."""
    if len(packed) != 1:
        return []
    held = packed[0]
    if isinstance(held, ast.Attribute):
        key = ("written options", held.attr)
        paths = project.keep(key, lambda: tuple(_written_in(project, held.attr)))
        read = [m for p in paths if (m := project.module(p)) is not None]
        return _all_known([(m, table) for m in read for table in _tables(m, held.attr)])
    return _all_known([(module, table) for table in _of_a_name(module, held)]) if isinstance(held, ast.Name) else []


def _all_known(tables: list[tuple[SourceModule, ast.expr]]) -> list[Options]:
    """The tables with their keys; none of them where a key of one is not a text that is written out."""
    out: list[Options] = []
    for module, table in tables:
        if not isinstance(table, ast.Dict) or any(not isinstance(k, ast.Constant) for k in table.keys):
            return []
        pairs = zip(table.keys, table.values, strict=True)
        out.append((module, {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}))
    return out


def _of_a_name(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    bound = bindings_of(module, name)
    tables: list[ast.expr] = [b.value for b in bound if isinstance(b.value, ast.Dict) and not b.part]
    if len(tables) < len(bound):
        return []
    changed = any(not isinstance(module.parent(n), ast.keyword) for n in module.reads_of(name.id))
    return [] if changed else tables  # `options["devices"] = …`, `options.update(…)`


def _written_in(project: Project, field: str) -> Iterator[str]:
    """The files that give a field of settings (`trainer_params = {…}`) its value.

    No file where one does anything with it but hand it on by `**`, so that something else may be in it.
    """
    word = re.escape(field.encode())
    held = re.compile(rb"(?<!\w)" + word + rb"(?!\w)")
    known = re.compile(rb"\*\*[\w.]+\." + word + rb"(?=\s*[,)])|(?m:^[ \t]+(?:\w+\.)?" + word + rb"[ ]*=[ ]*\{)")
    if any(held.search(project.read(p) or b"") for p in project.files_containing(field.encode(), kinds=_SETTINGS)):
        return
    named = (p for p in project.files_containing(field.encode()) if not is_test_file(p))
    holding = [p for p in named if held.search(project.read(p) or b"")]
    if all(len(held.findall(data)) == len(known.findall(data)) for p in holding if (data := project.read(p) or b"")):
        yield from sorted(holding)


def _tables(module: SourceModule, field: str) -> Iterator[ast.expr]:
    for assign in module.nodes(ast.Assign):
        if any(dotted(t).rpartition(".")[2] == field for t in assign.targets):
            yield assign.value
