"""Does every rank come to a statement, and as often as the others? Asked before a barrier is put there, callers included.

Tests and exits are those of `same_way`. A loop whose rounds may differ, a `try` that one rank may leave by an exception, the
workers of a loader, and a function that is handed to something unknown part the ranks as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.own_paths import callers_of, leads_to
from codemods.analysis.handlers import kinds_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.reach import to_a_launcher
from codemods.analysis.ranks.same_way import is_same, parting_ways
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.short_texts import shorter
from codemods.analysis.variance.analysis import variance
from codemods.files.source import FunctionNode, SourceModule, line_of
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_CLIMBS = 4
# A loop over such a thing runs forward and backward: its rounds are as many on all ranks, or the training hangs in any case.
_LOADERS = lazy(r"loader|(?:^|[._])dl\b|batches|\bdata_iter", 2)  # 2: re.IGNORECASE
_IN_STEP = frozenset({"range", "trange", "count", "cycle"})
_ROUND_IT = frozenset({"tqdm", "enumerate", "zip", "iter", "track", "islice", "reversed", "sorted", "list"})
_OF_WORKERS = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__", "__len__", "collate_fn", "worker_init_fn"})
_LEAVING = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "ImportError", "ModuleNotFoundError"})


def parted_before(project: Project, module: SourceModule, node: ast.stmt, function: FunctionNode | None) -> str:
    """Why a barrier behind `node` could hang, as "it is not shown that ..." goes on; "" where every rank is seen to come."""
    return next(_parted(project, module, node, function, frozenset()), "")


def _parted(
    project: Project, module: SourceModule, node: ast.stmt, function: FunctionNode | None, seen: frozenset[int]
) -> Iterator[str]:
    for line, assumed in _in_function(project, module, node, function):
        yield f"{assumed} (line {line})" if not seen else f"{assumed} ({module.path}:{line})"
    if function is None or id(function) in seen or len(seen) >= _CLIMBS:
        return
    if function.name in _OF_WORKERS:
        yield f"every rank calls {function.name} as often: a loader calls it in its workers"
        return
    sites = [s for s in callers_of(project, module, function) if leads_to(project, s, function)]
    if not sites:
        used = uses_of(project, module, function).outside_tests()
        for place in used.handed_on if not used.calls else ():
            if not to_a_launcher(place) and _is_handed_over(place.module, place.node):
                yield f"every rank calls {function.name}, which is handed on ({place.module.path}:{line_of(place.node)})"
    for site in sites:
        if not is_test_file(site.module.path):
            statement = site.module.statement_of(site.call)
            outer = site.module.function_of(site.call)
            yield from _parted(project, site.module, statement, outer, seen | {id(function)})


def _is_handed_over(module: SourceModule, node: ast.expr) -> bool:
    up = module.parent(node)
    return isinstance(module.parent(up) if isinstance(up, ast.keyword) else up, ast.Call)


def _in_function(
    project: Project, module: SourceModule, node: ast.stmt, function: FunctionNode | None
) -> Iterator[tuple[int, str]]:
    yield from parting_ways(project, module, node, function)
    below: ast.AST = node
    for up in module.ancestors(node):
        if up is function:
            return
        if isinstance(up, (ast.For, ast.AsyncFor)) and not _is_in_step(project, module, up.iter):
            yield up.lineno, f"every rank makes as many rounds over `{shorter(module, up.iter)}`"
        elif isinstance(up, (ast.Try, ast.TryStar)) and any(s is below for s in up.body) and _goes_on(up):
            yield up.lineno, "no rank leaves the `try` by an exception"
        below = up


def _goes_on(block: ast.Try | ast.TryStar) -> bool:
    """True where a handler lets the rank that failed go on, and so leave out the rest of the block."""
    for handler in block.handlers:
        ends = isinstance(handler.body[-1], ast.Raise) or _exits(handler.body[-1])
        if not ends and not (handler.type and all(last(dotted(k)) in _LEAVING for k in kinds_of(handler))):
            return True
    return False


def _exits(end: ast.stmt) -> bool:
    return isinstance(end, ast.Expr) and isinstance(end.value, ast.Call) and last(dotted(end.value.func)) in ("exit", "_exit")


def _is_in_step(project: Project, module: SourceModule, items: ast.expr) -> bool:
    """True for as many rounds on every rank: what is written out, counted by settings, or drives the training."""
    if isinstance(items, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Constant)):
        return True
    name = last(dotted(items.func)) if isinstance(items, ast.Call) else ""
    if isinstance(items, ast.Call) and name in _ROUND_IT:
        return any(_is_in_step(project, module, a) for a in items.args)
    if dotted(items) and _LOADERS.search(dotted(items)):
        return True
    if variance(project).value(module, items).differs:
        return False
    if isinstance(items, ast.Call) and name in _IN_STEP:
        return all(is_same(project, module, a) or isinstance(a, ast.Name) for a in items.args)
    return is_same(project, module, items)
