"""Places that no value of an option leads to: `args.beams if args.beams is not None else …`, where `--beams` has a default.

A default that is given, and a type that makes no None, leave the option no None; `choices` count what it can be. `closed_modes`
speaks of the runs that a project shows; this holds for every command line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.ranks.lost_options import OPTION_NAMES, nobody_sets
from codemods.analysis.ranks.option_domains import Domain, Value
from codemods.analysis.ranks.parsed_options import parsed_options
from codemods.analysis.ranks.test_outcomes import BOTH, OPERATORS, Outcomes, compared, outcomes
from codemods.files.source import SourceModule
from codemods.store.project import Project


def closed_by_options(project: Project, module: SourceModule, node: ast.AST) -> ast.expr | None:
    """The test in the function round `node` that leads past it, whatever a command line gives; None where there is none."""
    for test, wanted in _tests_round(module, node):
        if wanted not in _outcomes(project, module, test):
            return test
    return None


def _tests_round(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The tests that are asked before a place is come to, each with the answer that leads there."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(up, ast.BoolOp):
            for value in up.values:
                if value is below:
                    break
                yield value, isinstance(up.op, ast.And)
        elif isinstance(up, ast.IfExp) and below is not up.test:
            yield up.test, below is up.body
        elif isinstance(up, (ast.If, ast.While)) and below is not up.test:
            inside = any(below is s for s in up.body)
            if inside or isinstance(up, ast.If):
                yield up.test, inside
        below = up


def _outcomes(project: Project, module: SourceModule, test: ast.expr) -> Outcomes:
    """How a test can come out."""
    return outcomes(test, lambda part: _of_part(project, module, part))


def _of_part(project: Project, module: SourceModule, test: ast.expr) -> Outcomes:
    if isinstance(test, ast.Compare):
        return _compared(project, module, test)
    domain = _domain(project, module, test)
    return BOTH if domain is None or domain.values is None else frozenset(bool(v) for v in domain.values)


def _compared(project: Project, module: SourceModule, test: ast.Compare) -> Outcomes:
    """`args.x is None`, and `args.mode == "test"` where all that the option can be is counted."""
    if len(test.ops) != 1 or (ask := OPERATORS.get(type(test.ops[0]))) is None:
        return BOTH
    other = test.comparators[0]
    if not isinstance(other, ast.Constant) or (domain := _domain(project, module, test.left)) is None:
        return BOTH
    if other.value is None and not domain.none and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        return frozenset({isinstance(test.ops[0], (ast.IsNot, ast.NotEq))})
    values: tuple[Value, ...] = domain.values or ()
    return compared(ask, values, (other.value,))


def _domain(project: Project, module: SourceModule, node: ast.expr) -> Domain | None:
    """What an option can be that is read here, or by the one binding of a name; None for anything else."""
    if isinstance(node, ast.Name):
        value = only_value(bindings_of(module, node))
        node = value if value is not None else node
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id not in OPTION_NAMES:
        return None
    parsed = parsed_options(project, module, node.value)
    if not parsed or not all(node.attr in p.options for p in parsed):
        return None
    if not nobody_sets(project, module, parsed, node.attr, keys=False):  # `setattr` and the like are seen for themselves
        return None
    found = parsed[0].options[node.attr]
    for other in parsed[1:]:
        found = found.joined(other.options[node.attr])
    return found
