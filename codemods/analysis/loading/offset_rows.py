"""Labels that begin at `rows * rank`, in a loop in which the ranks' last batches differ in size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.call_graph import called_function
from codemods.analysis.loading.gathers import evens_out
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.rank_sources import rank_source
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_COUNTS = frozenset({"arange", "range"})


def offset_rows(project: Project, module: SourceModule, loop: ast.AST) -> Iterator[ast.BinOp]:
    """`arange(len(x)) + len(x) * rank` beside a gather of the project that takes tensors of several sizes."""
    sums = [n for n in walk(loop) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    found = [n for n in sums if _begins_at_rank(project, module, n)]
    if found and not module.holds(b"drop_last=True") and _gathers_any_size(project, module, loop):
        yield from found


def _begins_at_rank(project: Project, module: SourceModule, node: ast.BinOp) -> bool:
    for counted, offset in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(offset, ast.BinOp) or not isinstance(offset.op, ast.Mult):
            continue
        for length, rank in ((offset.left, offset.right), (offset.right, offset.left)):
            if _is_length(module, length) and rank_source(module, rank, project) is not None:
                return _counts_to(module, counted, module.text_of(length))
    return False


def _is_length(module: SourceModule, node: ast.expr) -> bool:
    """True for `len(x)`, `x.size(0)` and `x.shape[0]`, be it under a name."""
    if isinstance(node, ast.Name):
        value = only_value(bindings_of(module, node))
        return value is not None and not isinstance(value, ast.Name) and _is_length(module, value)
    if isinstance(node, ast.Call):
        first = node.args[0] if len(node.args) == 1 else None
        sized = isinstance(node.func, ast.Attribute) and node.func.attr == "size" and isinstance(first, ast.Constant)
        return dotted(node.func) == "len" or (sized and isinstance(first, ast.Constant) and first.value == 0)
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def _counts_to(module: SourceModule, node: ast.expr, length: str) -> bool:
    calls = (n for n in walk(node) if isinstance(n, ast.Call) and last(dotted(n.func)) in _COUNTS and n.args)
    return any(module.text_of(c.args[0]) == length for c in calls)


def _gathers_any_size(project: Project, module: SourceModule, loop: ast.AST) -> bool:
    calls = (n for n in walk(loop) if isinstance(n, ast.Call) and "gather" in last(dotted(n.func)).lower())
    sites = (called_function(project, module, c) for c in calls)
    return any(s is not None and evens_out(s.node) for s in sites)
