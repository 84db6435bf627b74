"""Is a number the mean of what a list holds, so that the mean over ranks is the mean of all?"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.names import dotted


def is_plain_mean(sources: Iterable[ast.expr]) -> bool:
    """True where the expressions average and nothing in them bends the average."""
    parts = [part for source in sources for part in ast.walk(source)]
    return any(_averages(part) for part in parts) and not any(_is_bent(part) for part in parts)


def plain_extreme(node: ast.expr | None) -> str:
    """"max" or "min" where the expression is the largest or smallest of what a list holds, "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    method = isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
    if method and node.func.attr in ("max", "min") and isinstance(node.func.value, ast.Call):  # type: ignore[attr-defined]
        joins = dotted(node.func.value.func) in ("torch.stack", "torch.cat")  # type: ignore[attr-defined]
        return str(node.func.attr) if joins else ""  # type: ignore[attr-defined]
    name = dotted(node.func)
    return name if name in ("max", "min") and len(node.args) == 1 and not node.keywords else ""


def _averages(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name in ("mean", "nanmean", "average", "fmean") or (isinstance(node, ast.Call) and dotted(node.func) == "mean")


_CURVES = frozenset({"exp", "sqrt", "log", "log2", "log10", "pow", "square", "std", "var", "norm", "max", "min", "median"})


def _is_bent(node: ast.AST) -> bool:
    """True for what makes the mean of the ranks' values another number than the value of all the data."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Pow) or (isinstance(node.op, ast.Div) and len(_summed(node.right)) > 1)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CURVES


def _summed(node: ast.expr) -> list[ast.expr]:
    """`tp` and `fp` of `tp + fp + 1e-8`: a score divides by numbers of its own, and a mean by how many there are."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_summed(node.left), *_summed(node.right)]
    counts = isinstance(node, ast.Call) and dotted(node.func) == "len"
    return [] if isinstance(node, ast.Constant) or counts else [node]
