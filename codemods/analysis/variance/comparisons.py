"""Comparisons with the best so far: which result is kept is decided by them."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.paths import path_of
from codemods.files.source import SourceModule, called_name, walk

_ORDERS = (ast.Lt, ast.Gt, ast.LtE, ast.GtE)
_BEST = re.compile(
    r"(^|_)(best|lowest|highest)(_|$|[A-Z])|^best|best$|^(min|max|prev|previous|old|last)_\w*(loss|acc|err|score|metric|f1|iou|psnr)",
    re.I,
)
_SO_FAR = re.compile(r"best|lowest|highest", re.I)
_KEEPS = re.compile(r"save|checkpoint|ckpt|copyfile|dump|export", re.I)
_FLAG = re.compile(r"best|improve|is_better|save", re.I)


def decides(module: SourceModule, node: ast.Compare) -> bool:
    """True for `loss < best` behind which the best is kept: by a test round it, a flag that it sets, or the caller."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], _ORDERS):
        return False
    sides = _sides(module, node)
    if any(_counts(s) for s in sides) or sum(_names_best(s) for s in sides) != 1:
        return False
    best = next(s for s in sides if _names_best(s))
    statement = _statement(module, node)
    if isinstance(statement, ast.Assign):
        flag = statement.targets[0]
        return bool(_FLAG.search(last(dotted(flag)))) and not (isinstance(flag, ast.Name) and _is_unread(module, flag))
    if is_answer(module, node):
        function = module.function_of(node)
        return function is not None and _FLAG.search(function.name) is not None
    if not isinstance(statement, ast.If):
        return False
    if not isinstance(best, ast.BinOp):
        return any(_keeps(n, best) for s in statement.body for n in walk(s))
    arms = (*statement.body, *statement.orelse)  # `if score < best + margin: wait += 1`, `else:` it is saved
    return any(isinstance(n, ast.Call) and _KEEPS.search(called_name(n)) for s in arms for n in walk(s))


def is_answer(module: SourceModule, node: ast.Compare) -> bool:
    """True in what a function gives back: `return self.best is None or loss < self.best` of `is_best`."""
    return isinstance(_statement(module, node), ast.Return)


def _is_unread(module: SourceModule, name: ast.Name) -> bool:
    """True for a flag that its function never asks: nothing is decided by it."""
    function = module.function_of(name)
    reads = (n for n in module.reads_of(name.id) if isinstance(n, ast.Name))
    return not any(function is None or module.function_of(n) is function or function in module.ancestors(n) for n in reads)


def rivals(module: SourceModule, node: ast.Compare) -> list[ast.expr]:
    """The side that is held against the best."""
    return [s for s in _sides(module, node) if not _names_best(s)]


def _sides(module: SourceModule, node: ast.Compare) -> tuple[ast.expr, ast.expr]:
    """What is held against each other; of `sign * (score - best) > 0` the two of which the difference is taken."""
    sides = (node.left, node.comparators[0])
    if sum(isinstance(s, ast.Constant) for s in sides) != 1:
        return sides
    taken = _difference(module, next(s for s in sides if not isinstance(s, ast.Constant)))
    ends = (taken.left, taken.right) if taken is not None else sides
    return ends if any(_SO_FAR.search(last(path_of(e))) for e in ends) else sides  # not how far it went since the last time


def _difference(module: SourceModule, node: ast.expr) -> ast.BinOp | None:
    """`score - best`, also with a sign before it, and under the one name that it is given."""
    if isinstance(node, ast.Name):
        bound = [b for b in bindings_of(module, node) if module.function_of(b.node) is module.function_of(node)]
        value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        return _difference(module, value) if isinstance(value, ast.BinOp) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return next((d for d in (_difference(module, s) for s in (node.left, node.right) if isinstance(s, ast.BinOp)) if d), None)
    return node if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else None


def _statement(module: SourceModule, node: ast.AST) -> ast.stmt | None:
    return next((up for up in module.ancestors(node) if isinstance(up, ast.stmt)), None)


def _counts(node: ast.expr) -> bool:
    """True for the number of something, and for a step: no metric."""
    return isinstance(node, ast.Constant) or re.search(r"(^|_)(num|n|count|epoch|step|iter)s?$", last(path_of(node))) is not None


def _names_best(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and last(dotted(node.func)) in ("min", "max"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):  # with a margin
        return not isinstance(node.left, ast.BinOp) and _names_best(node.left)
    name = path_of(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = str(node.slice.value)
    return bool(_BEST.search(last(name)))


def _keeps(node: ast.AST, best: ast.expr) -> bool:
    """True for what saves something, or sets the best anew."""
    if isinstance(node, ast.Call):
        return bool(_KEEPS.search(called_name(node)))
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        paths = [path_of(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
        return any(path and (path == path_of(best) or _FLAG.search(last(path))) for path in paths)
    return False
