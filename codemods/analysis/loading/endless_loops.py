"""Trainings in a `while True:` that is left under an option alone, which nothing in the repository gives: they are ended from
outside.

`while True: … if max_steps is not None and step >= max_steps: return`, where `--max_steps` is None by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.branches import branches_round
from codemods.analysis.call_graph import called_function
from codemods.analysis.conditions import conjuncts
from codemods.analysis.importing import users_by_step
from codemods.analysis.literals import is_none
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.analysis.ranks.failing_statements import TRAINS
from codemods.analysis.ranks.run_by_programs import is_no_program
from codemods.analysis.ranks.ungiven_options import UngivenOptions
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk_scope
from codemods.store.project import Project

_FOREVER = (b"while True", b"while 1")
_DEPTH = 4  # functions that end with a call of the next
_MOST_PROGRAMS = 8
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def ends_in_a_loop_for_ever(project: Project, module: SourceModule, statement: ast.stmt, depth: int = _DEPTH) -> bool:
    """True for a call, as the last thing that a program does, whose own last statement is such a loop."""
    if not any(project.files_containing(word) for word in _FOREVER):
        return False
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    if any(call is site for site in project.memo("calls of endless loops", lambda: _calls(project))):
        return True
    found = called_function(project, module, call) if depth else None
    return found is not None and ends_in_a_loop_for_ever(project, found.module, found.node.body[-1], depth - 1)


def _calls(project: Project) -> list[ast.Call]:
    """The calls of functions that train in such a loop, where each of their calls leaves it unbounded."""
    out: list[ast.Call] = []
    for path in sorted({p for word in _FOREVER for p in project.files_containing(word)}):
        module = project.module(path)
        for function in module.functions if module is not None else ():
            loop = function.body[-1]
            if module is not None and isinstance(loop, ast.While) and _is_endless(module, function, loop):
                out += _unbounded(project, module, function, loop)
    return out


def _is_endless(module: SourceModule, function: FunctionNode, loop: ast.While) -> bool:
    test = loop.test
    always = isinstance(test, ast.Constant) and bool(test.value)
    trains = TRAINS.search(module.text_of(loop)) is not None
    return always and trains and not any(_is_left_by(module, n, loop) for n in walk_scope(function) if isinstance(n, ast.Break))


def _is_left_by(module: SourceModule, leaving: ast.Break, loop: ast.While) -> bool:
    return next((up for up in module.ancestors(leaving) if isinstance(up, _LOOPS)), None) is loop


def _unbounded(project: Project, module: SourceModule, function: FunctionNode, loop: ast.While) -> list[ast.Call]:
    """All calls of the function, where none of them gives a bound under which it returns."""
    method = isinstance(module.parent(function), ast.ClassDef)
    names = {p.arg for p in parameters(function, bound=method)}
    bounds = [_bounds(module, leaving, names) for leaving in walk_scope(function) if isinstance(leaving, ast.Return)]
    used = uses_of(project, module, function).outside_tests()
    if not all(bounds) or used.more or used.handed_on:
        return []
    for site in used.calls:
        given = bind(function, site.call, bound=method)
        if given is None:
            return []
        values = defaults(function) | given
        if not all(any(_is_never_given(project, site.module, values.get(name)) for name in some) for some in bounds):
            return []
    return [site.call for site in used.calls]


def _bounds(module: SourceModule, leaving: ast.Return, names: set[str]) -> set[str]:
    """The parameters each of which has to be there for the `return` to be come to."""
    parts = (part for b in branches_round(module, leaving) if b.holds for part in conjuncts(b.test))
    return {name for part in parts if (name := _asked_to_be_there(part)) in names}


def _asked_to_be_there(test: ast.expr) -> str:
    """`steps` of `steps`, and of `steps is not None`; "" for any other test."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and is_none(test.comparators[-1]):
        test = test.left
    return test.id if isinstance(test, ast.Name) else ""


def _is_never_given(project: Project, module: SourceModule, value: ast.expr | None) -> bool:
    """True for None, and for an option that is None by itself and that nothing gives, in each program that has the file."""
    if value is None or is_none(value):
        return value is not None
    programs = list(_programs(project, module)) if isinstance(value, ast.Attribute) else []
    return 0 < len(programs) <= _MOST_PROGRAMS and all(UngivenOptions(project, p).stays_none(value) for p in programs)


def _programs(project: Project, module: SourceModule) -> Iterator[SourceModule]:
    if module.holds(b"__main__"):
        yield module
        return
    steps = users_by_step(project, module.path, lambda path: is_no_program(project, path))
    for path in sorted({p for found in steps for p in found if b"__main__" in (project.read(p) or b"")}):
        program = project.module(path)
        if program is not None and module.path in whole_program(project, path):
            yield program
