"""Entries of a dict of losses that are read from the rank's own, beside others that come from the reduced copy of it.

`reduced = reduce_loss_dict(losses)`, then `reduced["d"]` here and `losses["id"]` there: the slip of a line that was added later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.names import dotted, qualified
from codemods.analysis.variance.outlets import says_shown
from codemods.files.source import FunctionNode, SourceModule, stands_above, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_JOINS = frozenset({"reduce", "all_reduce"})


@record
class OwnEntry:
    """read: `losses["id"]`. reduced: the call that brings the dict together; copy: its name. shown: the call that shows it."""

    read: ast.Subscript
    reduced: ast.Call
    copy: str
    shown: ast.Call


def own_entries(project: Project, module: SourceModule) -> Iterator[OwnEntry]:
    """The first of each function."""
    for assign in module.nodes(ast.Assign):
        call, target = assign.value, assign.targets[0]
        if not isinstance(call, ast.Call) or len(call.args) != 1 or not isinstance(target, ast.Name):
            continue
        given, function = call.args[0], module.function_of(assign)
        if function is None or not isinstance(given, ast.Name) or given.id == target.id or not _reduces(project, module, call):
            continue
        entries = [e for e in _entries(module, function) if stands_above(assign, e)]
        if not any(dotted(e.value) == target.id for e in entries):
            continue
        for entry in entries:
            own = dotted(entry.value) == given.id and not _is_added(module, given.id, entry, assign)
            shown = _shown(module, entry) if own else None
            if shown is not None:
                yield OwnEntry(entry, call, target.id, shown)
                break


def _reduces(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a function of the project that takes a dict and reduces what is in it."""
    site = called_function(project, module, call)
    if site is None or not any(isinstance(n, ast.Attribute) and n.attr in ("keys", "items", "values") for n in walk(site.node)):
        return False
    inside = (qualified(site.module, n.func) for n in walk(site.node) if isinstance(n, ast.Call))
    return any(name.startswith("torch.distributed.") and name.rpartition(".")[2] in _JOINS for name in inside)


def _entries(module: SourceModule, function: FunctionNode) -> list[ast.Subscript]:
    """The reads of entries whose key is written out, in the order of the function."""
    found = [
        n
        for n in walk(function)
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and isinstance(n.slice, ast.Constant)
    ]
    return sorted((n for n in found if module.function_of(n) is function), key=lambda n: (n.lineno, n.col_offset))


def _is_added(module: SourceModule, name: str, entry: ast.Subscript, assign: ast.Assign) -> bool:
    """True where the entry is put into the dict behind the reduction: the copy does not have it."""
    key = ast.dump(entry.slice)
    stores = (n for n in module.nodes(ast.Subscript) if isinstance(n.ctx, ast.Store) and dotted(n.value) == name)
    return any(ast.dump(s.slice) == key and stands_above(assign, s) and stands_above(s, entry) for s in stores)


def _shown(module: SourceModule, entry: ast.Subscript) -> ast.Call | None:
    """The call that shows the entry, or the name that it is given."""
    for up in module.ancestors(entry):
        if isinstance(up, ast.Call) and says_shown(up):
            return up
        if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
            return _shown_name(module, up.targets[0])
        if isinstance(up, ast.stmt):
            return None
    return None


def _shown_name(module: SourceModule, name: ast.Name) -> ast.Call | None:
    function = module.function_of(name)
    if len([b for b in bindings_of(module, name) if module.function_of(b.node) is function]) != 1:
        return None
    for read in module.reads_of(name.id):
        if isinstance(read, ast.Name) and module.function_of(read) is function and stands_above(name, read):
            if isinstance(up := module.parent(read), ast.Attribute) and up.attr == "backward":
                return None
            shown = next((up for up in module.ancestors(read) if isinstance(up, ast.Call) and says_shown(up)), None)
            if shown is not None:
                return shown
    return None
