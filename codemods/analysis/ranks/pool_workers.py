"""What only the workers of a pool of processes run: `pool.map(draw, rows)`. They are no ranks, and have none."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import HandedOn, uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_POOLS = (b"Pool(", b"ProcessPoolExecutor(", b"process_map(")
_RUN = frozenset(
    {"map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async", "submit"}
)  # fmt: skip
_MADE = frozenset({"Pool", "ProcessPoolExecutor"})
_UP = 4


def is_of_a_pool(project: Project, module: SourceModule, function: FunctionNode | None) -> bool:
    """True for a function that is handed to pools of processes alone, and one that only such functions call."""
    if function is None or not any(project.files_containing(word) for word in _POOLS):
        return False
    key = ("of a pool", module.path, function.lineno, function.name)
    return project.keep(key, lambda: _is_of_a_pool(project, module, function, frozenset()))


def _is_of_a_pool(project: Project, module: SourceModule, function: FunctionNode, seen: frozenset[int]) -> bool:
    if id(function) in seen or len(seen) > _UP:
        return False
    used = uses_of(project, module, function).outside_tests()
    if used.more or not (used.calls or used.handed_on) or not all(map(_is_handed_to_pool, used.handed_on)):
        return False
    outer = [(s.module, s.module.function_of(s.call)) for s in used.calls]
    return all(f is not None and _is_of_a_pool(project, m, f, seen | {id(function)}) for m, f in outer)


def _is_handed_to_pool(place: HandedOn) -> bool:
    """True for the function that a pool runs, also with some of its arguments given: `partial(draw, size)`."""
    given: ast.AST = place.node
    call = place.module.parent(given)
    if isinstance(call, ast.Call) and last(dotted(call.func)) == "partial" and call.args[:1] == [given]:
        given, call = call, place.module.parent(call)
    if not isinstance(call, ast.Call) or not call.args or call.args[0] is not given:
        return False
    if last(qualified(place.module, call.func)) == "process_map":
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr in _RUN and _is_pool(place.module, call.func.value)


def _is_pool(module: SourceModule, holder: ast.expr) -> bool:
    if isinstance(holder, ast.Call):
        return _makes_pool(module, holder)
    if not isinstance(holder, (ast.Name, ast.Attribute)):
        return False
    bound = name_or_field_bindings(module, holder)
    made = [b.node if b.value is None and isinstance(b.node, ast.Call) else b.value for b in bound]
    return bool(made) and all(isinstance(m, ast.Call) and _makes_pool(module, m) for m in made)


def _makes_pool(module: SourceModule, call: ast.Call) -> bool:
    """False for threads, which belong to their rank."""
    name = qualified(module, call.func) or getattr(call.func, "attr", "")
    end = name.rpartition(".")[2] or getattr(call.func, "attr", "")
    return end in _MADE and "dummy" not in name
