"""The two ways of an `__iter__` that asks for its worker: with one, and without."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.shares import code_of
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk_block


def lone_reader(module: SourceModule, reads: FunctionNode, words: re.Pattern[str]) -> ast.If | None:
    """The test for a worker whose way without workers knows no rank, while all words of ranks stand on the other way.

    Nothing behind it may share out what is left: the words stand nowhere else in the function.
    """
    for test in (n for n in walk_block(reads.body) if isinstance(n, ast.If)):
        ways = _ways(module, test)
        if ways is None:
            continue
        lone, with_workers = ways
        if not _spoken(module, with_workers, words) or _spoken(module, lone, words):
            continue
        inside = {id(n) for n in walk_block(with_workers)}
        named = [n for n in walk_block(reads.body) if isinstance(n, (ast.Name, ast.Attribute)) and words.search(dotted(n))]
        if all(id(n) in inside for n in named):
            return test
    return None


def _spoken(module: SourceModule, body: list[ast.stmt], words: re.Pattern[str]) -> bool:
    return any(words.search(code_of(module, s)) for s in body)


def _ways(module: SourceModule, test: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
    """(without a worker, with one), for a test of what `get_worker_info()` gave."""
    told: ast.expr = test.test
    yes = True
    if isinstance(told, ast.UnaryOp) and isinstance(told.op, ast.Not):
        told, yes = told.operand, False
    elif isinstance(told, ast.Compare) and len(told.ops) == 1 and isinstance(told.ops[0], (ast.Is, ast.IsNot)):
        if not isinstance(told.comparators[0], ast.Constant) or told.comparators[0].value is not None:
            return None
        yes = isinstance(told.ops[0], ast.IsNot)
        told = told.left
    if not is_worker(module, told) or not test.orelse:
        return None
    return (test.orelse, test.body) if yes else (test.body, test.orelse)


def is_worker(module: SourceModule, node: ast.expr) -> bool:
    values = [b.value for b in bindings_of(module, node)] if isinstance(node, ast.Name) else [node]
    return bool(values) and all(isinstance(v, ast.Call) and last(dotted(v.func)) == "get_worker_info" for v in values)
