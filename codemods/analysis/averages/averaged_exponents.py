"""A perplexity of each rank's own mean that Lightning averages over the ranks: the mean of exponents is no exponent of a mean.

`self.log("perplexity", torch.exp(loss), sync_dist=True)` at the end of an epoch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.averaged_metrics import synced_logs
from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_ENDS = frozenset({"validation_epoch_end", "on_validation_epoch_end", "test_epoch_end", "on_test_epoch_end"})
_EXPONENTS = frozenset({"torch.exp", "math.exp", "numpy.exp"})
_SAME = frozenset({"item", "float", "detach", "to", "cpu"})
# What makes the mean one of all ranks, or is none of this rank's.
_OF_ALL = lazy(r"gather|reduce|callback_metrics|logged_metrics|\.compute\(|broadcast")


@record
class Exponent:
    """call: the `self.log`. of: what the exponent is taken of, as it is written."""

    call: ast.Call
    of: str


def averaged_exponents(project: Project, module: SourceModule) -> Iterator[Exponent]:
    for call, given, _ in synced_logs(project, module):
        function = module.function_of(call)
        if function is None or function.name not in _ENDS or _OF_ALL.search(module.text_of(function)):
            continue
        values = given.values if isinstance(given, ast.Dict) else [given]
        for value in values:
            taken = _exponent_of(module, function, value)
            if taken is not None and any(isinstance(n, ast.Name) for n in walk(taken)):
                yield Exponent(call, " ".join(module.text_of(taken).split()))
                break


def _exponent_of(module: SourceModule, function: FunctionNode, node: ast.expr, depth: int = 2) -> ast.expr | None:
    """`x` of `torch.exp(x)`, `x.exp()` and `2 ** x`, be it under a name."""
    if isinstance(node, ast.Name):
        value = only_value(bindings_in(module, function, node.id)) if depth else None
        return _exponent_of(module, function, value, depth - 1) if value is not None else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.left, ast.Constant):
        return node.right
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return _exponent_of(module, function, node.func.value, depth)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "exp" and not node.args:
        return node.func.value
    return node.args[0] if qualified(module, node.func) in _EXPONENTS and len(node.args) == 1 else None
