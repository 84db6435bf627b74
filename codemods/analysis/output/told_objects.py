"""Objects that are told at their making whether they speak: `log = Logger(on=rank == 0)`, and `if self.on:` in a method."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted
from codemods.analysis.output.natures import values_of
from codemods.analysis.ranks.rank_guards import ranks_of_test
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project


def lines_of_one_rank(project: Project, module: SourceModule, receiver: ast.expr, method: FunctionNode) -> frozenset[int]:
    """The lines of a method at which only some ranks come, by what the receiver was told when it was made."""
    made = [v for v in values_of(module, receiver) if isinstance(v, ast.Call)]
    told = [_told(project, module, call) for call in made]
    fields = set[str]().union(*told) if told and all(told) else set()
    return frozenset(_under(method, fields)) if fields else frozenset()


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
