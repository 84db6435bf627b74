"""Does a loop go through the items of one rank alone? What is put out there is that rank's own, and not said twice."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.names import dotted, last
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.natures import values_of
from codemods.source import SourceModule, walk

_PASSED_ON = frozenset({"enumerate", "list", "sorted", "iter", "tuple", "reversed", "tqdm", "trange", "track", "zip"})
_DEPTH = 4


def over_a_share(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where a loop round the statements, or one of them, goes over `files[rank::world]`, `range(rank, n, world)`, or
    `range(start, end)` with ends made of the rank.
    """
    loops = [n for s in statements for n in walk(s) if isinstance(n, (ast.For, ast.AsyncFor))]
    for up in module.ancestors(statements[0]):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.For, ast.AsyncFor)):
            loops.append(up)
    return any(_is_share(module, loop.iter, _DEPTH) for loop in loops)


def _is_share(module: SourceModule, items: ast.expr, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(items, ast.Call):
        name = last(dotted(items.func))
        if name in ("range", "islice"):
            return any(_is_of_rank(module, a, depth) for a in items.args)
        return name in _PASSED_ON and any(_is_share(module, a, depth) for a in items.args)
    if isinstance(items, ast.Subscript):
        return _is_of_rank(module, items.slice, depth)
    if isinstance(items, (ast.ListComp, ast.GeneratorExp)):
        tests = [test for part in items.generators for test in part.ifs]
        picked = any(names_rank(module.text_of(t)) for t in tests)
        return picked or any(_is_share(module, g.iter, depth) for g in items.generators)
    if isinstance(items, ast.Name):
        values = values_of(module, items)
        return len(values) == 1 and _is_share(module, values[0], depth - 1)
    return False


def _is_of_rank(module: SourceModule, part: ast.expr, depth: int) -> bool:
    """True for a number that is reckoned from the rank, in the expression or in what its names were given."""
    if depth < 0:
        return False
    if names_rank(module.text_of(part)):
        return True
    names = [n for n in walk(part) if isinstance(n, ast.Name)]
    given = [v for n in names for v in values_of(module, n)[:4]]
    return any(isinstance(v, (ast.BinOp, ast.Name, ast.Constant)) and _is_of_rank(module, v, depth - 1) for v in given)
