"""Does a loop go through the items of one rank alone? What is put out there is that rank's own, and not said twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from codemods.analysis.names import dotted, last
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.natures import values_of
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.runtime.lazy_pattern import lazy

_PASSED_ON = frozenset({"enumerate", "list", "sorted", "iter", "tuple", "reversed", "tqdm", "trange", "track", "zip"})
_DEPTH = 4
_BARS = frozenset({"tqdm", "track"})
_SAMPLER = lazy(rb"Distributed\w*Sampler")
_JOINED = re.compile(r"gather|reduce|broadcast")  # a value that the ranks have made together


def over_a_share(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where a loop round the statements, or one of them, goes over `files[rank::world]`, `range(rank, n, world)`,
    `range(start, end)` with ends made of the rank, or the indices of a `DistributedSampler`.
    """
    loops = [n for s in statements for n in walk(s) if isinstance(n, (ast.For, ast.AsyncFor))]
    for up in module.ancestors(statements[0]):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.For, ast.AsyncFor)):
            loops.append(up)
    return any(is_share(module, loop.iter) for loop in loops)


def is_share(module: SourceModule, items: ast.expr) -> bool:
    """True for items that are the rank's own by their text: `files[rank::world]`, `[x for x in files if owner(x) == rank]`."""
    return _is_share(module, items, _DEPTH)


def _is_share(module: SourceModule, items: ast.expr, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(items, ast.Call):
        name = last(dotted(items.func))
        if name in ("range", "islice"):
            return any(_is_of_rank(module, a, depth) for a in items.args)
        return _is_sampler(items) or (name in _PASSED_ON and any(_is_share(module, a, depth) for a in items.args))
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


def is_of_own_item(module: SourceModule, path: ast.expr) -> bool:
    """True for a path made of an index that a `DistributedSampler` has drawn, or of an item of a loader that has one.

    The count of such items (`for i, batch in enumerate(loader)`) is the same on every rank.
    """
    return _has_sampler(module) and _is_own(module, path, _DEPTH + 1)


@once_a_module
def _has_sampler(module: SourceModule) -> bool:
    return _SAMPLER.search(module.data) is not None


@once_a_module
def _asked(module: SourceModule) -> dict[tuple[ast.expr, int], bool]:
    """What `_is_own` was asked. A file that names `x` a hundred times asks the same of it from each place, and each asks on."""
    return {}


def _is_own(module: SourceModule, value: ast.expr, depth: int) -> bool:
    if depth < 0:
        return False
    known = _asked(module)
    if (value, depth) not in known:
        known[value, depth] = _is_made_of_own(module, value, depth)
    return known[value, depth]


def _is_made_of_own(module: SourceModule, value: ast.expr, depth: int) -> bool:
    if _JOINED.search(module.text_of(value)):
        return False
    for node in walk(value):
        if isinstance(node, ast.Subscript) and _draws(module, node.value, _DEPTH):
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loops = list(_gone_through(module, node))
            if any(_draws(module, items, _DEPTH) or _is_own(module, items, depth - 1) for items in loops if items is not None):
                return True
            if not loops and any(_is_own(module, v, depth - 1) for v in values_of(module, node)[:4]):
                return True
    return False


def _gone_through(module: SourceModule, name: ast.Name) -> Iterator[ast.expr | None]:
    """What the loop goes through whose target `name` is, in the body of that loop; None for what only counts the items."""
    below: ast.AST = name
    for up in module.ancestors(name):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, (ast.For, ast.AsyncFor)) and below is not up.iter and _binds(up.target, name):
            yield _drawn(up.target, up.iter, name)
            return
        below = up


def _drawn(target: ast.expr, items: ast.expr, name: ast.Name) -> ast.expr | None:
    called = last(dotted(items.func)) if isinstance(items, ast.Call) else ""
    if isinstance(items, ast.Call) and items.args:
        parts = target.elts if isinstance(target, ast.Tuple) else []
        if called in _BARS:
            return _drawn(target, items.args[0], name)
        if called == "enumerate" and len(parts) == 2:
            return None if _binds(parts[0], name) else _drawn(parts[1], items.args[0], name)
        if called == "zip" and len(parts) == len(items.args):
            return next((_drawn(p, a, name) for p, a in zip(parts, items.args, strict=True) if _binds(p, name)), None)
    return items


def _binds(target: ast.expr, name: ast.Name) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name.id for n in walk(target))


def _draws(module: SourceModule, items: ast.expr, depth: int) -> bool:
    """True for a `DistributedSampler`, a loader that is given one, and lists of what either yields."""
    if depth < 0:
        return False
    if isinstance(items, ast.Call):
        name = last(dotted(items.func))
        given = [k.value for k in items.keywords if k.arg in ("sampler", "batch_sampler")]
        if name in _PASSED_ON or name == "BatchSampler":
            given += items.args[:4]
        return _is_sampler(items) or any(_draws(module, g, depth - 1) for g in given)
    if isinstance(items, ast.IfExp):
        return _draws(module, items.body, depth) or _draws(module, items.orelse, depth)
    if isinstance(items, (ast.ListComp, ast.GeneratorExp)):
        return any(_draws(module, g.iter, depth - 1) for g in items.generators)
    return isinstance(items, (ast.Name, ast.Attribute)) and any(
        _draws(module, v, depth - 1) for v in values_of(module, items)[:4]
    )


def _is_sampler(call: ast.Call) -> bool:
    return _SAMPLER.fullmatch(last(dotted(call.func)).encode()) is not None
