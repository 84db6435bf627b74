"""Keys that rank 0 alone puts into a dict, where every rank reads them: here, or in a function that is handed the dict."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.handed import held_as
from codemods.analysis.handlers import handler_over
from codemods.analysis.ranks.dict_keys import Key, Keys, key_of, keys_of, reads_in
from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.used_as_there import is_kept_from
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_TAKING = ("KeyError", "LookupError", "Exception", "BaseException")


@record
class LostKey:
    """read: `log["val_loss"]`, in `module`. put: the key as rank 0 alone puts it in. through: the call that hands the dict on."""

    module: SourceModule
    read: ast.Subscript
    put: Key
    through: tuple[SourceModule, ast.Call] | None = None


def lost_keys(project: Project, module: SourceModule) -> Iterator[LostKey]:
    """The first such read of each dict of a function."""
    seen: set[tuple[int, str]] = set()
    for assign in module.nodes(ast.Assign):
        function, target = module.function_of(assign), assign.targets[0]
        if not isinstance(function, ast.FunctionDef) or not isinstance(target, ast.Name):
            continue
        key = (id(function), target.id)
        if key in seen or not isinstance(assign.value, (ast.Dict, ast.Call)):
            continue
        seen.add(key)
        if not _may_be_read(module, function, target.id):
            continue
        keys = keys_of(project, module, function, target.id)
        if keys is not None and keys.zero and (found := _first(project, module, function, target.id, keys)) is not None:
            yield found


def _may_be_read(module: SourceModule, function: ast.FunctionDef, name: str) -> bool:
    """True where the name is read by a key, or handed on: most are not."""
    reads = reads_in(FunctionSite(module, function), name)
    ups = [module.parent(n) for n in reads] if len(bindings_in(module, function, name)) == 1 else []
    return any(isinstance(up, (ast.Call, ast.keyword)) or (isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load))
               for up in ups)  # fmt: skip


def _first(project: Project, module: SourceModule, function: ast.FunctionDef, name: str, keys: Keys) -> LostKey | None:
    for read in reads_in(FunctionSite(module, function), name):
        if not _is_of_all(project, module, read, name):
            continue
        up = module.parent(read)
        if (put := _lost(module, read, keys)) is not None:
            assert isinstance(up, ast.Subscript)
            return LostKey(module, up, put)
        call = module.parent(up) if isinstance(up, ast.keyword) else up
        handed = isinstance(call, ast.Call) and call.func is not read
        found = _inside(project, module, call, read, keys) if handed and isinstance(call, ast.Call) else None
        if found is not None:
            return found
    return None


def _inside(project: Project, module: SourceModule, call: ast.Call, read: ast.Name, keys: Keys) -> LostKey | None:
    """The read in the function that is handed the dict."""
    site = called_function(project, module, call)
    held = held_as(site, call, read) if site is not None else ""
    if site is None or not held:
        return None
    for inner in reads_in(site, held):
        put, place = _lost(site.module, inner, keys), site.module.parent(inner)
        if put is None or ranks_at(site.module, inner, project=project).some or _is_kept(project, site.module, inner, held):
            continue
        assert isinstance(place, ast.Subscript)
        return LostKey(site.module, place, put, (module, call))
    return None


def _lost(module: SourceModule, read: ast.Name, keys: Keys) -> Key | None:
    up = module.parent(read)
    if not isinstance(up, ast.Subscript) or up.value is not read or not isinstance(up.ctx, ast.Load):
        return None
    key = key_of(module, up.slice)
    return keys.lost(key) if key is not None else None


def _is_of_all(project: Project, module: SourceModule, read: ast.Name, name: str) -> bool:
    if ranks_at(module, read, project=project).some or _is_kept(project, module, read, name):
        return False
    ranks = ranks_reaching(project, module, read)
    return not ranks.some or ranks is Ranks.UNKNOWN


def _is_kept(project: Project, module: SourceModule, read: ast.Name, name: str) -> bool:
    return handler_over(module, read, _TAKING) is not None or is_kept_from(project, module, read, name)
