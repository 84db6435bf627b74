"""A collective of one of the functions that a setting chooses between: `save = save_whole if sharded else save_plain`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.branches import leading_tests
from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.functions import keeps_its_results
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_branches import known_split
from codemods.analysis.ranks.reached_collectives import Reached, reached_in
from codemods.analysis.ranks.trace_items import Step
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

Choice = tuple[ast.expr, list[ast.expr]]


def reached_by_choice(project: Project, module: SourceModule, call: ast.Call) -> Reached | None:
    """The collective that a call of a name comes to, where it holds a function of the project that reaches one.

    None where the tests that decide over the call may ask for the same as those that choose the function.
    """
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    for value, tests in _choices(module, call.func):
        site = find_function(project, module, dotted(value)) if not _asked_alike(project, module, call, tests) else None
        found = _reached(project, site) if site is not None else None
        if found is not None:
            text = f"{module.text_of(call.func)}(), where it is {dotted(value)}"
            return Reached(found.collective, (Step(module.path, call.lineno, text), *found.steps))
    return None


def _reached(project: Project, site: FunctionSite) -> Reached | None:
    return reached_in(project, site) if site.node.name != "__init__" and not keeps_its_results(site.node) else None


def _choices(module: SourceModule, func: ast.expr) -> list[Choice]:
    """Each function by name that the callee may hold, and the tests that choose it; none where it may hold anything else."""
    found: list[Choice] = []
    for bound in name_or_field_bindings(module, func):
        if bound.value is None or bound.part or bound.parameter:
            return []
        tests = [test for test, _ in leading_tests(module, bound.node)]
        found += [(value, [*tests, *more]) for value, more in _arms(bound.value)]
    return found if all(isinstance(value, (ast.Name, ast.Attribute)) for value, _ in found) else []


def _arms(value: ast.expr) -> Iterator[Choice]:
    if not isinstance(value, ast.IfExp):
        yield value, []
        return
    for arm in (value.body, value.orelse):
        yield from ((one, [value.test, *tests]) for one, tests in _arms(arm))


def _asked_alike(project: Project, module: SourceModule, call: ast.Call, tests: list[ast.expr]) -> bool:
    """True where a test over the call, the rank's own left out, may ask for what the choice asks for, too."""
    parts = [part for test, _ in leading_tests(module, call) for part in _parts(test)]
    over = [part for part in parts if known_split(module, part, project) is None]
    chosen, asked = _read(module, tests), _read(module, over)
    if not {_owner(name) for name in chosen}.isdisjoint(map(_owner, asked)):
        return True
    return any(_is_part(one, other) for one in chosen | _behind(module, tests) for other in asked | _behind(module, over))


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _parts(value)
    else:
        yield test


def _read(module: SourceModule, nodes: Iterable[ast.AST]) -> set[str]:
    """The objects that are read there, as far as they are written out: `args.sharded`, `self.args.kind`."""
    return {dotted(n) for n in _reads(module, nodes)} - {"", "self"}


def _behind(module: SourceModule, tests: list[ast.expr]) -> set[str]:
    """What the objects that the tests read were worked out from."""
    bound = [b.value for n in _reads(module, tests) for b in name_or_field_bindings(module, n) if b.value is not None]
    return _read(module, bound)


def _reads(module: SourceModule, nodes: Iterable[ast.AST]) -> Iterator[ast.Name | ast.Attribute]:
    """The longest names: of `args.sharded` not `args`. The object of a field counts where the field is not found."""
    for node in (n for top in nodes for n in walk(top)):
        if isinstance(node, (ast.Name, ast.Attribute)):
            field = isinstance(node, ast.Attribute) and bool(name_or_field_bindings(module, node))
            if field or not isinstance(module.parent(node), ast.Attribute):
                yield node


def _owner(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[: 2 if parts[0] in ("self", "cls") else 1])


def _is_part(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
