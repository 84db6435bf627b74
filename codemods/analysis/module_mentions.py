"""Where a project mentions a module that has another name: imports in every form, and its dotted name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.local_names import is_local
from codemods.analysis.mention_places import Found, Rename, behind, first_of
from codemods.analysis.names import dotted
from codemods.api.findings import Span
from codemods.files.source import SourceModule
from codemods.store.project import Project


def modules(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    del project
    for plain in module.nodes(ast.Import):
        for alias in plain.names:
            if _is_below(alias.name, rename.old):
                yield first_of(module.span(alias), rename.old), rename.new, ""
    for source in module.nodes(ast.ImportFrom):
        yield from _import_from(module, source, rename)
    whole = {a.name for n in module.nodes(ast.Import) for a in n.names if not a.asname}
    if any(_is_below(name, rename.old) for name in whole):
        for node in (*module.nodes(ast.Attribute), *module.nodes(ast.Name)):
            if dotted(node) == rename.old and not is_local(module, rename.old.partition(".")[0], node):
                yield module.span(node), rename.new, ""


def _is_below(name: str, old: str) -> bool:
    return name == old or name.startswith(f"{old}.")


def _import_from(module: SourceModule, node: ast.ImportFrom, rename: Rename) -> Iterator[Found]:
    written = "." * node.level + (node.module or "")
    if not node.level and _is_below(written, rename.old):
        if where := behind(module, node, "from", rename.old):
            yield where, rename.new, ""
        return
    if node.level and node.module and _reaches(module, written, rename.old):
        parent, _, name = rename.new.rpartition(".")
        where = behind(module, node, "from", written)
        if parent == rename.owner and where:
            yield Span(where.end_line, where.end_column - len(rename.name), where.end_line, where.end_column), name, ""
        else:
            yield module.span(node), "", "a relative import cannot follow it into another package"
        return
    for alias in node.names:
        if alias.name == rename.name and _names_module(module, node, written, rename):
            parent, _, name = rename.new.rpartition(".")
            if parent == rename.owner:
                kept = name if alias.asname else f"{name} as {rename.name}"
                yield first_of(module.span(alias), rename.name), kept, ""
            else:
                yield module.span(node), "", f"`{rename.name}` moves into another package: this import is yours to split"


def _names_module(module: SourceModule, node: ast.ImportFrom, written: str, rename: Rename) -> bool:
    if not node.level:
        return written == rename.owner
    joined = written + rename.name if written.endswith(".") else f"{written}.{rename.name}"
    return _reaches(module, joined, rename.old)


def _reaches(module: SourceModule, relative: str, old: str) -> bool:
    """True if the relative import is one of the module `old`, whether its file has been moved already or not."""
    level = len(relative) - len(relative.lstrip("."))
    folders = module.path.split("/")[:-1]
    full = [*folders[: len(folders) - level + 1], *relative.lstrip(".").split(".")]
    return level <= len(folders) + 1 and f".{'.'.join(full)}".endswith(f".{old}")
