"""Sums over the rank's own share of the steps that are divided by the steps that the whole set would take one process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.never_joined import is_joined, made_of, shows_quotient
from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.several_processes import several_processes
from codemods.analysis.reaching import sure_value
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_ROUNDED = frozenset({"int", "ceil", "floor", "round"})
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


@record
class ByTheWhole:
    """count: `len(rows) // size`. number: the sum that is divided by it. loop: over the loader that shares the rows out."""

    count: ast.BinOp
    number: str
    loop: ast.For
    shown: ast.Call


def divided_by_whole(project: Project, module: SourceModule) -> Iterator[ByTheWhole]:
    """One for each sum of a function."""
    if not module.holds(b"DistributedSampler") or not variance(project).is_parallel(module):
        return
    told: set[tuple[FunctionNode, str]] = set()
    for node in module.nodes(ast.BinOp):
        function = module.function_of(node)
        number = node.left.id if isinstance(node.left, ast.Name) else ""
        if not isinstance(node.op, ast.Div) or function is None or not number:
            continue
        count = _steps(module, function, node.right) if (function, number) not in told else None
        added = added_once(module, function, number) if count is not None else None
        loop = loop_round(module, function, added, node) if added is not None else None
        if count is None or added is None or loop is None or not _is_loop_over(module, function, loop, count):
            continue
        names = made_of(module, function, added.value)
        if names is None or is_joined(project, module, function, names | {number}):
            continue
        if (shown := shows_quotient(module, function, node)) is not None:
            told.add((function, number))
            yield ByTheWhole(count, number, loop, shown)


def _steps(module: SourceModule, function: FunctionNode, node: ast.expr) -> ast.BinOp | None:
    """`len(rows) // size`, also rounded, and behind a name."""
    if isinstance(node, ast.Name):
        value = sure_value(module, function, node)
        return _steps(module, function, value) if value is not None and not isinstance(value, ast.Name) else None
    if isinstance(node, ast.Call) and last(dotted(node.func)) in _ROUNDED and len(node.args) == 1:
        return _steps(module, function, node.args[0])
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Div, ast.FloorDiv)):
        return None
    whole = node.left
    counts = isinstance(whole, ast.Call) and dotted(whole.func) == "len" and len(whole.args) == 1
    return node if counts and isinstance(node.right, (ast.Name, ast.Attribute)) else None


def added_once(module: SourceModule, function: FunctionNode, number: str) -> ast.AugAssign | None:
    """The one statement that adds to the number, where nothing else but a 0 is put into it."""
    bound = bindings_in(module, function, number)
    added = [b.node for b in bound if isinstance(b.node, ast.AugAssign) and isinstance(b.node.op, ast.Add)]
    blank = _blanks(module, function, number)
    return added[0] if len(added) == 1 and len(bound) == len(added) + len(blank) else None


def _blanks(module: SourceModule, function: FunctionNode, number: str) -> list[ast.Assign]:
    """`total = 0`."""
    bound = bindings_in(module, function, number)
    found = [b.node for b in bound if isinstance(b.value, ast.Constant) and b.value.value == 0]
    return [n for n in found if isinstance(n, ast.Assign)]


def loop_round(module: SourceModule, function: FunctionNode, added: ast.AugAssign, division: ast.expr) -> ast.For | None:
    """The loop of which each round adds, once, and that begins with nothing in the number."""
    loop = next((up for up in module.ancestors(added) if isinstance(up, _LOOPS)), None)
    blank = _blanks(module, function, dotted(added.target))
    if not isinstance(loop, ast.For) or any(up is loop for b in blank for up in module.ancestors(b)):
        return None
    behind = division.lineno > (loop.end_lineno or loop.lineno)
    begun = any(b.lineno < loop.lineno and module.parent(b) is module.parent(loop) for b in blank)
    return loop if behind and begun else None


def _is_loop_over(module: SourceModule, function: FunctionNode, loop: ast.For, count: ast.BinOp) -> bool:
    """True where the loader of the loop shares out the rows that are counted, in batches of the size that they are divided by."""
    loader = unpacked(loop.iter)
    made = sure_value(module, function, loader) if isinstance(loader, ast.Name) else loader
    if not isinstance(made, ast.Call) or last(dotted(made.func)) != "DataLoader" or not isinstance(count.left, ast.Call):
        return False
    given = {**dict(zip(("dataset", "batch_size"), made.args, strict=False)), **{k.arg: k.value for k in made.keywords if k.arg}}
    rows, size, sampler = given.get("dataset"), given.get("batch_size"), given.get("sampler")
    if rows is None or size is None or sampler is None:
        return False
    same = ast.dump(rows) == ast.dump(count.left.args[0]) and ast.dump(size) == ast.dump(count.right)
    return same and _is_unchanged(module, function, (rows, size)) and _shares_out(module, function, sampler, rows)


def _is_unchanged(module: SourceModule, function: FunctionNode, parts: tuple[ast.expr, ...]) -> bool:
    """True where the function gives none of them another value: a parameter, a field that is set elsewhere, or one binding."""
    for part in parts:
        if isinstance(part, ast.Name) and len(bindings_in(module, function, part.id)) > 1:
            return False
        stored = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        if isinstance(part, ast.Attribute) and any(dotted(n) == dotted(part) for n in stored):
            return False
    return True


def _shares_out(module: SourceModule, function: FunctionNode, sampler: ast.expr, rows: ast.expr) -> bool:
    """True for `DistributedSampler(rows)` over all processes, also behind a name, and behind a test for several."""
    value = sure_value(module, function, sampler) if isinstance(sampler, ast.Name) else sampler
    if isinstance(value, ast.IfExp) and (several := several_processes(module, value.test)) is not None:
        value = value.body if several else value.orelse
    if not isinstance(value, ast.Call) or last(dotted(value.func)) != "DistributedSampler" or not value.args:
        return False
    own = any(isinstance(n, ast.Constant) and n.value == 1 for k in value.keywords if k.arg == "num_replicas" for n in (k.value,))
    return ast.dump(value.args[0]) == ast.dump(rows) and not own
