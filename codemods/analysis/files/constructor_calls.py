"""Which calls give an `__init__` what it takes, beside those by the name of its class: heirs, and tables of classes?

`super().__init__(config, name)` of an heir, and `AGENTS[kind](config, name)` of a table that holds the class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, first_subclasses
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import CallSite, constructions
from codemods.analysis.registries import built_by
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_HEIRS = 8
_FILES = 12


def constructor_calls(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    """Those calls, for an `__init__`; none for another function."""
    owner = module.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return ()
    key = ("constructor calls", module.path, owner.lineno)
    return project.memo(key, lambda: (*_of_heirs(project, module, owner), *_of_tables(project, module, owner)))


def _of_heirs(project: Project, module: SourceModule, owner: ast.ClassDef) -> Iterator[CallSite]:
    """The calls by which heirs hand on to this very `__init__`: those of a class between them end at that one's own."""
    for heir in first_subclasses(project, ClassSite(module, owner), _HEIRS):
        init = _init(heir.node)
        if init is None or not any(dotted(base).rpartition(".")[2] == owner.name for base in heir.node.bases):
            continue
        for node in walk_scope(init):
            if isinstance(node, ast.Call) and _is_supers(node.func):
                yield CallSite(heir.module, node)


def _init(owner: ast.ClassDef) -> FunctionNode | None:
    return next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)


def _is_supers(func: ast.expr) -> bool:
    if not isinstance(func, ast.Attribute) or func.attr != "__init__" or not isinstance(func.value, ast.Call):
        return False
    return isinstance(func.value.func, ast.Name) and func.value.func.id == "super"


def _of_tables(project: Project, module: SourceModule, owner: ast.ClassDef) -> Iterator[CallSite]:
    """`AGENTS[kind](…)`, where the name that is bound to a dict of classes is used."""
    made = constructions(project, module, owner)
    for read in made.handed_on if made is not None else ():
        table = read.module.parent(read.node)
        stored = read.module.parent(table) if isinstance(table, ast.Dict) else None
        if not isinstance(stored, ast.Assign) or is_test_module(read.module):
            continue
        for name in (t.id for t in stored.targets if isinstance(t, ast.Name)):
            yield from _calls_through(project, name, owner)


def _calls_through(project: Project, name: str, owner: ast.ClassDef) -> Iterator[CallSite]:
    users = [p for p in project.files_using(name, most=_FILES) or () if not is_test_file(p)]
    for path in users:
        other = project.module(path)
        for call in other.nodes(ast.Call) if other is not None else ():
            if other is None or not _looks_into(other, call, name):
                continue
            choices = built_by(project, other, call)
            if choices is not None and any(site.node is owner for site in choices.sites):
                yield CallSite(other, call)


def _looks_into(module: SourceModule, call: ast.Call, name: str) -> bool:
    """False for most calls, before anything is asked: `AGENTS[kind](…)`, `AGENTS.get(kind)(…)`, and a name that holds one."""
    return isinstance(call.func, ast.Name) or name in module.text_of(call.func)
