"""What a function stores, read from a file to which each rank adds its part just above, without a wait for the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.files.file_calls import OPENERS, Act, file_call
from codemods.analysis.files.file_paths import arguments_of, forms
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import last, qualified
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.collectives import collective_at
from codemods.files.source import FunctionNode, SourceModule, walk, walk_scope
from codemods.store.project import Project

_CHASED = 6
_DEEP = 3
_ADDS = ("a", "+")


def read_back(project: Project, module: SourceModule, stored: ast.expr) -> str:
    """Which file that is and where it is filled, "" for none."""
    function = module.function_of(stored)
    for read in _reads(module, stored):
        opened = file_call(module, read)
        if opened is None or module.function_of(read) is not function:
            continue
        for call in _calls_above(module, function, read):
            if _adds_part(project, module, call, opened.path) and not _waits(project, module, function, call, read):
                return f"`{module.text_of(opened.path)}`, to which each rank adds its part in line {call.lineno}"
    return ""


def _reads(module: SourceModule, stored: ast.expr) -> Iterator[ast.Call]:
    """The calls that open or load a file from which a value is made, through names of its function."""
    seen: set[str] = set()
    left: list[ast.expr] = [stored]
    for _ in range(_CHASED):
        inside = [n for value in left for n in walk(value)]
        yield from (n for n in inside if isinstance(n, ast.Call) and (f := file_call(module, n)) and f.act is Act.READS)
        names = [n for n in inside if isinstance(n, ast.Name) and n.id not in seen]
        seen |= {n.id for n in names}
        left = [v for n in names for v in values_of(module, n)]


def _calls_above(module: SourceModule, function: FunctionNode | None, read: ast.Call) -> Iterator[ast.Call]:
    for node in walk_scope(function or module.tree):
        if isinstance(node, ast.Call) and node.lineno < read.lineno:
            yield node


def _adds_part(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where a call of a function of the project opens the path to add to it: the path it is handed, or gives back."""
    site = called_function(project, module, call)
    if site is None:
        return False
    wanted = forms(module, path)
    given_back = isinstance(path, ast.Name) and any(v is call for v in assigned(module, path, path.id))
    for name, value in arguments_of(site.node, call).items():
        same = wanted & forms(module, value) or (given_back and _gives_back(site.node, name))
        if same and _opens_to_add(project, site, name, 0):
            return True
    return False


def _gives_back(function: FunctionNode, name: str) -> bool:
    values = [n.value for n in walk_scope(function) if isinstance(n, ast.Return)]
    return any(isinstance(v, ast.Name) and v.id == name for v in values)


def _opens_to_add(project: Project, site: FunctionSite, name: str, depth: int) -> bool:
    module = site.module
    for call in (n for n in walk(site.node) if isinstance(n, ast.Call)):
        if not any(isinstance(a, ast.Name) and a.id == name for a in (*call.args, *(k.value for k in call.keywords))):
            continue
        if qualified(module, call.func) in OPENERS or last(qualified(module, call.func)) == "open":
            if any(letter in mode for mode in _modes(module, site.node, call) for letter in _ADDS):
                return True
        elif depth < _DEEP and (inner := called_function(project, module, call)) is not None:
            given = arguments_of(inner.node, call).items()
            handed = [n for n, value in given if isinstance(value, ast.Name) and value.id == name]
            if any(_opens_to_add(project, inner, n, depth + 1) for n in handed):
                return True
    return False


def _modes(module: SourceModule, function: FunctionNode, call: ast.Call) -> Iterator[str]:
    """The modes in which a file may be opened: as it is written, or what the name of it stands for."""
    for given in (*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")):
        values = [given]
        if isinstance(given, ast.Name):
            values += assigned(module, given, given.id)
            values += filter(None, (defaults(function).get(given.id),))
        yield from (v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str))


def _waits(project: Project, module: SourceModule, function: FunctionNode | None, call: ast.Call, read: ast.Call) -> bool:
    """True where all ranks meet between the two: in the function itself, or in what the call runs."""
    between = [c for c in walk_scope(function or module.tree) if isinstance(c, ast.Call) and call.lineno < c.lineno < read.lineno]
    if any(collective_at(module, c, project) is not None for c in between):
        return True
    site = called_function(project, module, call)
    inner = (n for n in walk_scope(site.node) if isinstance(n, ast.Call)) if site is not None else ()
    return any(site is not None and collective_at(site.module, c, project) is not None for c in inner)
