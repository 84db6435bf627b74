"""Objects that are told at their making whether they speak: `log = Logger(on=rank == 0)`, and `if self.on:` in a method."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.model.signatures import bind, is_bound, parameters
from codemods.analysis.names import dotted, is_parameter
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_guards import ranks_of_test
from codemods.analysis.ranks.uses import constructions, uses_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_HANDED = 3  # functions that hand the object on
_CALLS = 8


def lines_of_one_rank(project: Project, module: SourceModule, receiver: ast.expr, method: FunctionNode) -> frozenset[int]:
    """The lines of a method at which only some ranks come, by what the receiver was told when it was made."""
    made = list(_made(project, module, receiver, _HANDED))
    told = [_told(project, home, call) if call is not None else set[str]() for home, call in made]
    fields = set[str].intersection(*told) if told else set()
    return frozenset(_under(method, fields)) if fields else frozenset()


def _made(
    project: Project, module: SourceModule, receiver: ast.expr, depth: int
) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    """The calls that make an object, here or where a caller hands it over; None where a caller hands over another value."""
    if isinstance(receiver, ast.Name) and is_parameter(module, receiver.id, receiver):
        yield from _handed(project, module, receiver, depth) if depth else ((module, None),)
        return
    for value in values_of(module, receiver):
        if isinstance(value, ast.Call):
            yield module, value
        elif isinstance(value, ast.Name) and depth:  # `self.log = log`
            yield from _made(project, module, value, depth - 1)


def _handed(
    project: Project, module: SourceModule, name: ast.Name, depth: int
) -> Iterator[tuple[SourceModule, ast.Call | None]]:
    """What makes the object that the calls of a function hand it under a name; nothing for a function that nobody calls."""
    function = module.function_of(name)
    owner = module.parent(function) if function is not None else None
    if function is None or name.id not in {p.arg for p in parameters(function, bound=False)}:
        yield module, None
        return
    is_constructor = isinstance(owner, ast.ClassDef) and function.name == "__init__"
    uses = constructions(project, module, owner) if is_constructor and isinstance(owner, ast.ClassDef) else None
    calls = uses if is_constructor else uses_of(project, module, function)
    sites = calls.outside_tests() if calls is not None else None
    if sites is None or sites.handed_on or len(sites.calls) > _CALLS:
        yield module, None
        return
    for site in sites.calls:
        given = (bind(function, site.call, bound=is_bound(module, function)) or {}).get(name.id)
        if isinstance(given, (ast.Name, ast.Attribute)):
            yield from _made(project, site.module, given, depth - 1)
        else:
            yield site.module, given if isinstance(given, ast.Call) else None


def _told(project: Project, module: SourceModule, call: ast.Call) -> set[str]:
    """The fields of a new object that hold a test for one rank, as the call that makes it gives them."""
    site = find_class(project, module, dotted(call.func))
    found = class_facts(project, site.module, site.node).method("__init__") if site is not None else None
    given = bind(found[1], call, bound=True) if found is not None else None
    if found is None or given is None:
        return set()
    asked = ((name, ranks_of_test(module, value, project=project)) for name, value in given.items())
    tests = {name for name, ranks in asked if ranks is not None and ranks.some}
    kept: dict[str, set[str]] = {}
    for node in walk_scope(found[1]) if tests else ():
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and dotted(target.value) == "self":
                    kept.setdefault(target.attr, set()).add(dotted(node.value))
    return {field for field, values in kept.items() if len(values) == 1 and values <= tests}


def _under(method: FunctionNode, fields: set[str]) -> set[int]:
    """The lines of a method under `if self.field:`, and below `if not self.field: return`."""
    lines: set[int] = set()
    for node in walk_scope(method):
        if isinstance(node, ast.If) and _asks(node.test, fields):
            lines |= set(range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1))
    for at, statement in enumerate(method.body):
        leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return)
        if leaves and isinstance(statement, ast.If) and isinstance(statement.test, ast.UnaryOp):
            if isinstance(statement.test.op, ast.Not) and _asks(statement.test.operand, fields) and method.body[at + 1 :]:
                lines |= set(range(method.body[at + 1].lineno, (method.body[-1].end_lineno or 0) + 1))
    return lines


def _asks(test: ast.expr, fields: set[str]) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks(part, fields) for part in test.values)
    return isinstance(test, ast.Attribute) and dotted(test.value) == "self" and test.attr in fields
