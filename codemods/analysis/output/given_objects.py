"""What a function does for one call of it: not what is for callers without the object that this one hands over.

`def say(text, fabric=None)` prints by itself where there is no Fabric, and a caller that has one never comes there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import bind, defaults, parameters
from codemods.files.source import FunctionNode, SourceModule, walk


def lines_without(module: SourceModule, call: ast.Call, function: FunctionNode) -> frozenset[int]:
    """The lines of the function that run only where a parameter is None to which this call gives an object."""
    given = bind(function, call, bound=False) or {}
    there = {name for name, value in given.items() if isinstance(value, ast.Name) and _is_an_object(module, value)}
    arms = (arm for node in walk(function) if there and isinstance(node, ast.If) for arm in _arms_of_none(node, there))
    return frozenset(n for arm in arms for s in arm for n in range(s.lineno, (s.end_lineno or s.lineno) + 1))


def _is_an_object(module: SourceModule, name: ast.Name) -> bool:
    """True for a name of which the same function reads an attribute without a question, or a parameter of a class that it
    names without `Optional`: it is not None there.
    """
    function = module.function_of(name)
    if function is not None and _is_annotated(function, name.id):
        return True
    reads = (a for a in module.nodes(ast.Attribute) if isinstance(a.value, ast.Name) and a.value.id == name.id)
    return any(module.function_of(a) is function and not _is_asked(module, a, name.id) for a in reads)


def _is_annotated(function: FunctionNode, name: str) -> bool:
    said = next((p.annotation for p in parameters(function, bound=False) if p.arg == name), None)
    return isinstance(said, (ast.Name, ast.Attribute)) and name not in defaults(function)


def _is_asked(module: SourceModule, node: ast.AST, name: str) -> bool:
    tests = (up.test for up in module.ancestors(node) if isinstance(up, (ast.If, ast.IfExp, ast.While)))
    return any(isinstance(n, ast.Name) and n.id == name for test in tests for n in ast.walk(test))


def _arms_of_none(node: ast.If, names: set[str]) -> Iterator[list[ast.stmt]]:
    """The arm of a test that runs where one of the names is None."""
    test = node.test
    if isinstance(test, ast.Name) and test.id in names:
        yield node.orelse
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        if isinstance(test.operand, ast.Name) and test.operand.id in names:
            yield node.body
    elif isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id in names and len(test.ops) == 1:
        if is_none(test.comparators[0]):
            if isinstance(test.ops[0], ast.Is):
                yield node.body
            elif isinstance(test.ops[0], ast.IsNot):
                yield node.orelse
