"""Ranks that some call of the project leaves at None: a plain test for rank 0 lets nobody through in such a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_in, bindings_of
from codemods.analysis.conditions import conjuncts
from codemods.analysis.model.signatures import defaults
from codemods.analysis.output.spelled_test import Spelling
from codemods.analysis.ranks.handed_arguments import argument, arguments
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import replace
from codemods.store.project import Project

_PLAIN = lazy(r"^(?P<rank>[A-Za-z_]\w*)(?:\s*==\s*0|\s+in\s+[(\[]-1, ?0[)\]])$")
_DEPTH = 3


def with_absent_rank(project: Project, module: SourceModule, statement: ast.stmt, spelled: Spelling) -> Spelling:
    """The test with None beside 0, where some call gives None for the rank: `rank in (None, 0)`."""
    found = _PLAIN.match(spelled.test)
    if found is None:
        return spelled
    rank = found["rank"]
    bound = _visible(module, statement, rank)
    if not bound or not _is_none_in(project, module, bound, 0) or _is_told_apart(module, statement, rank):
        return spelled
    text = f"{rank} in (None, 0)" if "==" in spelled.test else f"{rank} in (None, -1, 0)"
    return replace(spelled, test=text)


def _visible(module: SourceModule, statement: ast.stmt, name: str) -> list[Binding]:
    scope = module.function_of(statement)
    while scope is not None:
        if bound := bindings_in(module, scope, name):
            return bound
        scope = module.function_of(scope)
    return bindings_in(module, None, name)


def _is_none_in(project: Project, module: SourceModule, bound: list[Binding], depth: int) -> bool:
    """True where one of the values is None, and no plain line gives the name another."""
    if len(bound) > 1 and any(_is_plain_line(module, b) and not _is_none(b.value) for b in bound):
        return False
    for binding in bound:
        if binding.parameter and isinstance(binding.node, ast.arg):
            if any(_may_be_none(project, m, v, depth + 1) for m, v in _handed(project, module, binding.node)):
                return not _is_filled(module, binding.node)
        elif binding.value is not None and not binding.part and _may_be_none(project, module, binding.value, depth + 1):
            return True
    return False


def _may_be_none(project: Project, module: SourceModule, value: ast.expr, depth: int) -> bool:
    if _is_none(value):
        return True
    if isinstance(value, ast.IfExp):
        return any(_may_be_none(project, module, part, depth) for part in (value.body, value.orelse))
    if isinstance(value, ast.Name) and depth <= _DEPTH:
        return _is_none_in(project, module, bindings_of(module, value), depth)
    return False


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_plain_line(module: SourceModule, binding: Binding) -> bool:
    """True for an assignment that every run of its function comes to."""
    if binding.parameter:
        return False
    up = module.parent(module.statement_of(binding.node))
    while isinstance(up, (ast.With, ast.AsyncWith)):
        up = module.parent(up)
    return isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))


def _handed(project: Project, module: SourceModule, parameter: ast.arg) -> Iterator[tuple[SourceModule, ast.expr]]:
    """What the callers give for a parameter, and its default where one of them leaves it."""
    function = module.function_of(parameter)
    if function is None:
        return
    yield from arguments(project, module, function, parameter.arg)
    default = defaults(function).get(parameter.arg)
    if default is not None and _is_left_out(project, module, function, parameter.arg):
        yield module, default


def _is_left_out(project: Project, module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where a call of a plain function surely gives nothing for a parameter."""
    if isinstance(module.parent(function), ast.ClassDef):
        return False
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    calls = (place.call for place in uses_of(project, module, function).outside_tests().calls)
    return any(argument(c, names, name) is None and not _is_spread(c) for c in calls)


def _is_spread(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def _is_filled(module: SourceModule, parameter: ast.arg) -> bool:
    """True for a parameter that its function binds anew: `if rank is None: rank = …`."""
    return len(bindings_in(module, module.function_of(parameter), parameter.arg)) > 1


def _is_told_apart(module: SourceModule, statement: ast.stmt, name: str) -> bool:
    """True where the place stands under `rank is not None`, or behind what ends where it is None."""
    below: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, ast.If) and any(below is s for s in up.body):
            if any(_says_not_none(part, name) for part in conjuncts(up.test)):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(_ends_without(s, name) for s in up.body if s.lineno < statement.lineno)
        below = up
    return False


def _says_not_none(test: ast.expr, name: str) -> bool:
    return ast.unparse(test) == f"{name} is not None"


def _ends_without(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assert):
        return _says_not_none(statement.test, name)
    ends = isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Return, ast.Raise))
    return ends and isinstance(statement, ast.If) and ast.unparse(statement.test) == f"{name} is None"
