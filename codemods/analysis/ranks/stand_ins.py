"""Values that stand in for a parameter which nobody leaves out: `path = Path(path) if path else self.folder`."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.model.signatures import bind, defaults, has_parameter, is_bound
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project


def stands_in_for_nothing(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in the arm that is taken without a parameter (its default is None), where each call in sight gives one."""
    function = module.function_of(node)
    if function is None:
        return False
    name = _stood_in_for(module, function, node)
    if not name:
        return False
    uses = uses_of(project, module, function).outside_tests()
    if uses.more or uses.handed_on or not uses.calls:
        return False
    given = (bind(function, site.call, bound=is_bound(module, function)) for site in uses.calls)
    return all(values is not None and name in values and not _is_none(values[name]) for values in given)


def _stood_in_for(module: SourceModule, function: FunctionNode, node: ast.AST) -> str:
    """The parameter without which the arm round the node is taken; "" where there is none."""
    below = node
    for up in module.ancestors(node):
        if up is function:
            break
        if isinstance(up, ast.IfExp) and below is not up.test:
            other = up.body if below is up.orelse else up.orelse
            for name in _optional(module, function, up.test):
                if _reads(other, name) and not _reads(below, name):
                    return name
        elif isinstance(up, ast.If) and any(s is below for s in up.body):
            for name in _optional(module, function, up.test):
                if _is_without(up.test, name):
                    return name
        below = up
    return ""


def _optional(module: SourceModule, function: FunctionNode, test: ast.expr) -> list[str]:
    """The parameters in a test whose default is None; a test of several names is none of one parameter."""
    held = defaults(function)
    named = {n.id for n in walk(test) if isinstance(n, ast.Name) and has_parameter(function, n.id)}
    return [n for n in named if len(named) == 1 and _is_none(held.get(n)) and _is_the_parameter(module, function, n)]


def _is_the_parameter(module: SourceModule, function: FunctionNode, name: str) -> bool:
    """True where the function changes the parameter in no more than the one place that fills it in."""
    return sum(not b.parameter for b in bindings_in(module, function, name)) <= 1


def _is_without(test: ast.expr, name: str) -> bool:
    """`path is None`, `not path`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Name) and test.operand.id == name
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Is):
        return False
    return isinstance(test.left, ast.Name) and test.left.id == name and _is_none(test.comparators[0])


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(node))


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
