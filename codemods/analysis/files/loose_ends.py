"""Constructors that no call of the project is seen to run: their class is handed on, to a data module or a registry.

A class that a Lightning data module or module names is made by its hooks, on every rank. One that goes into a registry or out
of a factory is made by the script that imports it, over any number of imports, where that script joins the process group.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from itertools import islice

from codemods.analysis.class_index import ClassSite, Role, class_facts, find_class, first_subclasses
from codemods.analysis.distribution import is_test_file, ranks_in_file
from codemods.analysis.importing import imports_of, users_by_step
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.uses import constructions
from codemods.api.findings import Evidence
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule, line_of, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SETTINGS = (".yaml", ".yml")
_MAKES = lazy(rb"\binstantiate(?:_from_config)?\(|\bLightningCLI\(")
BROUGHT_IN = "brings it in and runs on several processes"
_REGISTERS = (".register_module", ".register", ".register_class")
_BUILDS = ("build(", "get(")
_HEIRS = 12
_HOPS = 6
_FILES = 60
# What a project that lets one process in first says about it, anywhere on the way.
_FIRST = lazy(rb"main_process_first|zero_first|rank_zero_first|prepare_data\(|FileLock|local_files_only")
_JOINS = lazy(
    rb"init_process_group\(|\bAccelerator\(|\bTrainer\(|deepspeed\.init|init_distributed|torch\.distributed|\bdist\."
    rb"|local_rank|LOCAL_RANK"
)


def made_elsewhere(
    project: Project, module: SourceModule, function: FunctionNode
) -> tuple[tuple[SourceModule, ast.AST], Evidence] | None:
    """(the place that hands the class on, what shows several processes there)."""
    owner = module.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return None
    made = constructions(project, module, owner)
    if made is None:  # a base of many: who makes the heirs may be a setting all the same
        return by_a_setting_of_an_heir(project, module, owner)
    if made.outside_tests().calls:
        return None
    for place in made.outside_tests().handed_on:
        holder = place.module.class_of(place.node)
        if holder is not None:
            facts = class_facts(project, place.module, holder)
            if not facts.is_a(Role.LIGHTNING_DATA_MODULE) and not facts.is_a(Role.LIGHTNING_MODULE):
                continue
            own = facts.method("prepare_data")
            if own is not None:
                return None
            text = f"{holder.name} makes it in a hook, which a Trainer runs on every rank"
            return (place.module, place.node), Evidence("static", text, place.module.path, line_of(place.node))
        shown = script_above(project, place.module)
        if shown is not None:
            return (place.module, place.node), shown
    if made.handed_on:
        return None
    return (
        _by_another_name(project, module, owner) or by_a_setting(project, module, owner)
        or by_a_setting_of_an_heir(project, module, owner) or _by_a_registry(project, module, owner)
    )  # fmt: skip


def _by_a_registry(
    project: Project, module: SourceModule, owner: ast.ClassDef
) -> tuple[tuple[SourceModule, ast.AST], Evidence] | None:
    """`@DATASETS.register_module()`: a script that brings the class in makes it by its name."""
    names = (dotted(d.func if isinstance(d, ast.Call) else d) for d in owner.decorator_list)
    table = next((n.rpartition(".")[0] for n in names if n.endswith(_REGISTERS)), "")
    if not table or not project.files_containing(f"{last(table)}.".encode()):
        return None
    homes = (project.resolve(i.dotted, module.path) for i in module.imports.get(table.partition(".")[0], ()))
    near = [*importers_of(project, module.path), *(h.path for h in homes if h is not None)]
    built = any(f"{last(table)}.{b}".encode() in (project.read(path) or b"") for path in near for b in _BUILDS)
    shown = script_above(project, module) if built else None
    return ((module, owner), shown) if shown is not None else None


def _by_another_name(
    project: Project, module: SourceModule, owner: ast.ClassDef
) -> tuple[tuple[SourceModule, ast.AST], Evidence] | None:
    """`from .one import Trainer as TrainerOne`: a factory chooses among classes of one name."""
    for path in importers_of(project, module.path):
        other = project.module(path)
        for bound, found in other.imports.items() if other is not None else ():
            for item in found:
                resolved = project.resolve(item.dotted, path) if item.dotted.endswith(f".{owner.name}") else None
                if other is None or bound == owner.name or resolved is None or resolved.path != module.path:
                    continue
                if (shown := script_above(project, other)) is not None:
                    return (other, item.node), shown
    return None


def by_a_setting(
    project: Project, module: SourceModule, owner: ast.ClassDef
) -> tuple[tuple[SourceModule, ast.AST], Evidence] | None:
    """`_target_: sets.rows.Rows` in a YAML file, and the script of several processes that makes what such files name."""
    if _FIRST.search(module.data) or (setting := _naming_setting(project, module, owner)) is None:
        return None
    path_of_setting, named = setting
    for path in project.files_containing(b"__main__"):
        data = project.read(path) or b""
        if is_test_file(path) or not _MAKES.search(data) or not _JOINS.search(data):
            continue
        if _FIRST.search(data) or (shown := _shown(project, path)) is None:
            return None
        text = f"{path_of_setting} names {named} for {path}, which runs on several processes"
        return (module, owner), Evidence("static", text, shown.path, shown.line)
    return None


def _naming_setting(project: Project, module: SourceModule, owner: ast.ClassDef) -> tuple[str, str] | None:
    """(the YAML file, the name in it): by the file of the class, or by a package that hands it on, `sets.Rows`."""
    named = f"{stem_of(module.path)}.{owner.name}"
    if direct := project.files_containing(os.fsencode(named), kinds=_SETTINGS):
        return direct[0], named
    target = re.compile(rb"_target_:[ \t]*[\"']?([\w.]+\." + os.fsencode(owner.name) + rb")\b(?!\.)")
    for setting in project.files_containing(os.fsencode(f".{owner.name}"), kinds=_SETTINGS):
        for found in {m.decode() for m in target.findall(project.read(setting) or b"")}:
            if _is_handed_on_as(project, module, owner, found):
                return setting, found
    return None


def _is_handed_on_as(project: Project, module: SourceModule, owner: ast.ClassDef, named: str) -> bool:
    """True where the name leads over a package round the file to the class."""
    folder = os.path.dirname(module.path)
    resolved = project.resolve(named, module.path)
    if resolved is None or len(resolved.rest) != 1 or resolved.path != f"{folder}/__init__.py":
        return False
    package = project.module(resolved.path)
    site = find_class(project, package, owner.name) if package is not None else None
    return site is not None and site.node is owner


def by_a_setting_of_an_heir(
    project: Project, module: SourceModule, owner: ast.ClassDef
) -> tuple[tuple[SourceModule, ast.AST], Evidence] | None:
    """The same of a class below it whose constructor comes to that of the base."""
    if not project.files_containing(b"_target_", kinds=_SETTINGS):
        return None
    for heir in first_subclasses(project, ClassSite(module, owner), _HEIRS):
        own = heir.methods().get("__init__")
        if own is None or any(_is_of_base(n) for n in walk_scope(own) if isinstance(n, ast.Call)):
            if (found := by_a_setting(project, heir.module, heir.node)) is not None:
                return found
    return None


def _is_of_base(call: ast.Call) -> bool:
    """`super().__init__(...)`."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" else None
    return isinstance(holder, ast.Call) and dotted(holder.func) == "super"


def script_above(project: Project, module: SourceModule) -> Evidence | None:
    """The script that joins the process group and imports this file; None where a file between lets one process in first."""
    return project.keep(("script above", module.path), lambda: _find_script(project, module))


def _find_script(project: Project, module: SourceModule) -> Evidence | None:
    for path in brought_in_by(project, module.path, hops=_HOPS, most=_FILES):
        data = project.read(path) or b""
        if _FIRST.search(data):
            return None
        if b"__main__" in data and _JOINS.search(data) and (shown := _shown(project, path)) is not None:
            return shown
    return None


def _shown(project: Project, path: str) -> Evidence | None:
    script = project.module(path)
    shown = ranks_in_file(project, script) if script is not None else None
    if shown is None:
        return None
    return Evidence("static", f"{path} {BROUGHT_IN}: {shown.text}", path, shown.line)


def brought_in_by(project: Project, path: str, *, hops: int, most: int) -> Iterator[str]:
    """The file, those that import it, those that import them: `hops` layers, ended where they come to more than `most` files."""
    known, found = {path}, [path]
    for _ in range(hops):
        yield from found
        found = [u for p in found for u in importers_of(project, p) if u not in known]
        known.update(found)
        if not found or len(known) > most:
            return


def importers_of(project: Project, path: str) -> list[str]:
    """The files that import this one, or a name of the package that it is."""
    found = []
    for user in project.files_importing(stem_of(path)):
        if user == path or is_test_file(user):
            continue
        brought = (project.resolve(name, user) for name in imports_of(project, user))
        if any(r is not None and r.path == path for r in brought):
            found.append(user)
    return found


def may_be_made_elsewhere(project: Project, path: str, hops: int = 2) -> bool:
    """False where no setting names the file, and none that imports it speaks of a data module: told from the bytes."""
    if project.files_containing(os.fsencode(f"{stem_of(path)}."), kinds=_SETTINGS):
        return True
    package = os.path.basename(os.path.dirname(path))  # `_target_: sets.Rows`, where the package hands the class on
    if package and project.files_containing(os.fsencode(f"_target_: {package}."), kinds=_SETTINGS):
        return True
    steps = islice(users_by_step(project, path, is_test_file), hops + 1)
    return any(b"DataModule" in (project.read(p) or b"") for found in steps for p in found)
