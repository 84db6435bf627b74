"""The loader that a loop of two modes goes through where it does not train."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import SourceModule, walk, walk_scope


def loaders_without_training(module: SourceModule, loop: ast.For) -> list[ast.expr]:
    """`held` of `if training: rows = own else: rows = held`, for a loop through `rows` that goes backward under that test alone.

    The test is a name or a field, which the function gives no value itself.
    """
    source, tests = unpacked(loop.iter), _tests_of_training(module, loop)
    if not isinstance(source, ast.Name) or not tests:
        return []
    found: list[ast.expr] = []
    for bound in bindings_of(module, source):
        statement = module.statement_of(bound.node)
        branch = module.parent(statement)
        if isinstance(branch, ast.If) and module.text_of(branch.test) in tests and statement in branch.orelse:
            found += [bound.value] if bound.value is not None and not bound.part else []
    return found


def _tests_of_training(module: SourceModule, loop: ast.For) -> frozenset[str]:
    """The texts of the tests under which alone a round goes backward: those that stand over each of its steps."""
    steps = [n for n in walk_scope(loop) if isinstance(n, ast.Attribute) and n.attr == "backward"]
    over = [_tests_over(module, step, loop) for step in steps]
    return frozenset.intersection(*over) if over else frozenset()


def _tests_over(module: SourceModule, node: ast.AST, loop: ast.For) -> frozenset[str]:
    found: set[str] = set()
    below = node
    for up in module.ancestors(node):
        if up is loop:
            break
        if isinstance(up, ast.If) and below in up.body and _is_constant(module, up.test):
            found.add(module.text_of(up.test))
        below = up
    return frozenset(found)


def _is_constant(module: SourceModule, test: ast.expr) -> bool:
    """True for a parameter or a field that the function gives no value."""
    if isinstance(test, ast.Name):
        return all(b.parameter for b in bindings_of(module, test))
    function = module.function_of(test)
    if not isinstance(test, ast.Attribute) or function is None:
        return False
    stored = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return all(module.text_of(n) != module.text_of(test) for n in stored)
