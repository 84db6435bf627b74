"""A name of an import statement of Lightning that has moved: the statement and the uses, written for its new place."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.mention_places import behind, first_of
from codemods.api.findings import DropImport, Edit, NeedImport, RenameName
from codemods.data.lightning_names import Moved
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Old:
    """A name of an import statement that stands at its old place."""

    alias: ast.alias
    moved: Moved


def moved_edits(
    project: Project, module: SourceModule, node: ast.ImportFrom, package: str, old: Sequence[Old]
) -> tuple[list[Edit], str]:
    """The edits of one import statement, and why there are none."""
    renames: list[Edit] = []
    for one in old:
        if one.moved.new_name != one.moved.name and one.alias.asname is None:
            uses, why = _uses(project, module, one)
            if why:
                return [], why
            renames += uses
    places = {o.moved.new for o in old}
    if len(places) == 1 and len(old) == len(node.names) and (where := behind(module, node, "from", node.module or "")):
        new = ".".join(p for p in (package, *places) if p)
        to = first_of(where, node.module or "")
        edits: list[Edit] = [RenameName(module.path, to, new)] if new != node.module else []
        for one in old:
            if one.moved.new_name != one.moved.name:
                edits.append(RenameName(module.path, first_of(module.span(one.alias), one.moved.name), one.moved.new_name))
        return [*edits, *renames], ""
    if not module.is_whole(node):
        return [], "the import shares its line with other statements"
    edits = [DropImport(module.path, module.span(node), o.alias.asname or o.alias.name) for o in old]
    for place in dict.fromkeys(o.moved.new for o in old):
        names = [o for o in old if o.moved.new == place and not _is_there(module, package, o)]
        listed = ", ".join(o.moved.new_name + (f" as {o.alias.asname}" if o.alias.asname else "") for o in names)
        new = ".".join(p for p in (package, place) if p)
        edits += [NeedImport(module.path, module.span(node), f"from {new} import {listed}")] if names else []
    return [*edits, *renames], ""


def _is_there(module: SourceModule, package: str, one: Old) -> bool:
    """True where another import brings the same name from its new place."""
    bound = one.alias.asname or one.moved.new_name
    return any(i.dotted == f"{package}.{one.moved.place}" for i in module.imports.get(bound, ()))


def _uses(project: Project, module: SourceModule, one: Old) -> tuple[list[Edit], str]:
    """The uses of a name that is called otherwise now, or why they are left alone."""
    name, new = one.moved.name, one.moved.new_name
    own = any(d.name == new for d in (*module.nodes(ast.ClassDef), *module.functions))
    if own or new in module.imports or any(n.id == new for n in module.nodes(ast.Name)):
        return [], f"the file gives {new} another meaning"
    if len(module.imports.get(name, ())) != 1 or f'"{name}"' in module.text or f"'{name}'" in module.text:
        return [], f"{name} is also written as a text, or imported twice: write {new}"
    if other := _taken_from(project, module, name):
        return [], f"{other} imports {name} from here: write {new} in both"
    uses = [n for n in module.nodes(ast.Name) if n.id == name]
    if any(not isinstance(n.ctx, ast.Load) for n in uses) or any(a.arg == name for a in module.nodes(ast.arg)):
        return [], f"the file binds {name} anew"
    if any(isinstance(up, ast.JoinedStr) for n in uses for up in module.ancestors(n)):
        return [], f"{name} stands in an f-string: write {new}"
    return [RenameName(module.path, module.span(n), new) for n in uses], ""


def _taken_from(project: Project, module: SourceModule, name: str) -> str:
    """Another file of the project that imports the name from this one."""
    for path in sorted(project.files_containing(name.encode())):
        other = project.module(path) if path != module.path and path.endswith(".py") else None
        for found in other.imports.get(name, ()) if other is not None else ():
            place = project.resolve(found.module, path)
            if place is not None and place.path == module.path:
                return path
    return ""
