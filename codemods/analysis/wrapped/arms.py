"""Places of which a test lets only one run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# What says the same each time that a program asks.
_STEADY_CALLS = frozenset({"hasattr", "isinstance", "device_count", "is_available", "is_initialized", "get_world_size"})


def are_other_arms(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """True where a test lets either of two places run: the body of an `if` and its `else`."""
    ways = {id(up): arm for up, arm in _arms(module, one)}
    return any({ways.get(id(up)), arm} == {"body", "orelse"} for up, arm in _arms(module, other))


def are_opposite(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """True where of two places only one runs: arms of one test, or of two that read alike and answer alike in the whole file."""
    ways = [(up, arm) for up, arm in _arms(module, one)]
    for up, arm in _arms(module, other):
        for test, way in ways:
            if {arm, way} == {"body", "orelse"} and (test is up or _answer_alike(module, test.test, up.test)):
                return True
    return False


def _answer_alike(module: SourceModule, one: ast.expr, other: ast.expr) -> bool:
    """True for two tests of one spelling whose names are bound once at most: `if args.gpus > 1:` in two loops."""
    if ast.dump(one) != ast.dump(other) or not all(_is_steady(module, n) for n in walk(one)):
        return False
    return module.function_of(one) is module.function_of(other)


def _is_steady(module: SourceModule, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in _STEADY_CALLS
    if isinstance(node, ast.Name):
        bound = bindings_of(module, node)
        return len(bound) < 2 and not any(isinstance(up, _LOOPS) for b in bound for up in (b.node, *module.ancestors(b.node)))
    if isinstance(node, ast.Attribute):
        return not any(dotted(t) == dotted(node) for a in module.nodes(ast.Assign) for t in a.targets)
    return not isinstance(node, (ast.NamedExpr, ast.Await, ast.Subscript, ast.Lambda))


def is_bare(module: SourceModule, node: ast.AST, path: str) -> bool:
    """True in the `else` of `if hasattr(model, "module")`, which a wrapper does not come to."""
    return any(arm == "orelse" and _asks_for_module(up.test, path) for up, arm in _arms(module, node))


def is_beside_module(module: SourceModule, node: ast.AST, path: str) -> bool:
    """True where the other arm of a test round the place asks `model.module`: this one is for the bare model."""
    for up, arm in _arms(module, node):
        other = {"body": up.orelse, "orelse": up.body}.get(arm, [])
        parts = other if isinstance(other, list) else [other]
        if any(dotted(n) == f"{path}.module" for part in parts for n in walk(part)):
            return True
    return False


def _asks_for_module(test: ast.expr, path: str) -> bool:
    asks = isinstance(test, ast.Call) and dotted(test.func) == "hasattr" and len(test.args) == 2
    if not asks or not isinstance(test, ast.Call) or not isinstance(test.args[1], ast.Constant):
        return False
    return dotted(test.args[0]) == path and test.args[1].value == "module"


def _arms(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.If | ast.IfExp, str]]:
    """The tests over a place, each with the arm of it that the place stands in."""
    below = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)):
            yield up, _arm(up, below)
        below = up


def _arm(up: ast.If | ast.IfExp, below: ast.AST) -> str:
    for name in ("body", "orelse"):
        arm = getattr(up, name)
        if below is arm or (isinstance(arm, list) and any(s is below for s in arm)):
            return name
    return "test"
