"""Sums over the rank's own share of the rows, divided by the rows of the whole set: `total / len(loader.dataset)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.divided_by_whole import added_once, loop_round
from codemods.analysis.averages.never_joined import is_joined, made_of, shows_quotient
from codemods.analysis.loading.origins import all_known, origins
from codemods.analysis.loading.samplers import is_distributed_sampler, is_none, loader_of, samplers_of
from codemods.analysis.names import dotted
from codemods.analysis.reaching import sure_value
from codemods.analysis.schedules import is_prepared_above
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class ByAllRows:
    """count: `len(loader.dataset)`, or the name that holds it. number: the sum. loop: over the loader that is shared out."""

    count: ast.expr
    number: str
    loop: ast.For
    shown: ast.Call


def divided_by_rows(project: Project, module: SourceModule) -> Iterator[ByAllRows]:
    """The first sum of each loop."""
    if not module.holds(b".dataset)") or not variance(project).is_parallel(module):
        return
    told: set[int] = set()
    for node in module.nodes(ast.BinOp):
        function = module.function_of(node)
        number = node.left.id if isinstance(node.left, ast.Name) else ""
        if not isinstance(node.op, ast.Div) or function is None or not number:
            continue
        loader = _counted(module, function, node.right)
        added = added_once(module, function, number) if loader is not None else None
        loop = loop_round(module, function, added, node) if added is not None else None
        if loader is None or added is None or loop is None or id(loop) in told or dotted(unpacked(loop.iter)) != dotted(loader):
            continue
        if not _shares_out(project, module, loader, loop):
            left(module, node, "{} is not seen to share the rows out", loader)
            continue
        names = made_of(module, function, added.value)
        if names is None or is_joined(project, module, function, names | {number}):
            left(module, node, "{} may be that of all ranks", number)
            continue
        if (shown := shows_quotient(module, function, node)) is not None:
            told.add(id(loop))
            yield ByAllRows(node.right, number, loop, shown)


def _counted(module: SourceModule, function: FunctionNode, node: ast.expr) -> ast.expr | None:
    """The loader of `len(loader.dataset)`, also behind a name."""
    if isinstance(node, ast.Name):
        value = sure_value(module, function, node)
        return _counted(module, function, value) if value is not None and not isinstance(value, ast.Name) else None
    if not isinstance(node, ast.Call) or dotted(node.func) != "len" or len(node.args) != 1:
        return None
    rows = node.args[0]
    if not isinstance(rows, ast.Attribute) or rows.attr != "dataset" or not isinstance(rows.value, (ast.Name, ast.Attribute)):
        return None
    return rows.value


def _shares_out(project: Project, module: SourceModule, loader: ast.expr, loop: ast.For) -> bool:
    """True for a loader that `prepare` gave back above, and for one whose every maker gives it a DistributedSampler.

    A sampler that is None beside it is that of a run of one process.
    """
    if is_prepared_above(module, loader, loop):
        return True
    made = origins(project, module, loader)
    if not all_known(made):
        return False
    for origin in made:
        found = loader_of(origin)
        samplers = samplers_of(project, found) if found is not None else ()
        dealt = [is_distributed_sampler(project, s) for s in samplers]
        if not any(dealt) or not all(d or is_none(s) for d, s in zip(dealt, samplers, strict=True)):
            return False
    return True
