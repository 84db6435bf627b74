"""The largest or smallest number of each rank that Lightning averages over the ranks.

`self.log("reward/max", reward.max(), sync_dist=True)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.averages.averaged_metrics import synced_logs
from codemods.analysis.bindings import bindings_in, only_value
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_WORDS = {"max": lazy(r"(^|[^a-z])(max|maximum|largest|highest)([^a-z]|$)"),
          "min": lazy(r"(^|[^a-z])(min|minimum|smallest|lowest)([^a-z]|$)")}  # fmt: skip
_ENDS = {"max": "max", "amax": "max", "min": "min", "amin": "min"}
_SAME = frozenset({"item", "float", "detach", "to", "cpu"})


@record
class Extreme:
    """call: the `self.log`. word: "max" or "min". of: the value, as it is written."""

    call: ast.Call
    word: str
    of: str


def averaged_extremes(project: Project, module: SourceModule) -> Iterator[Extreme]:
    """Those whose key says as well that the largest or smallest is meant."""
    for call, given, _ in synced_logs(project, module):
        key = next((k.value for k in call.keywords if k.arg == "name"), call.args[0] if call.args else None)
        if last(dotted(call.func)) != "log" or key is None:
            continue
        word = _extreme(module, given)
        if word and _WORDS[word].search(module.text_of(key).lower()):
            yield Extreme(call, word, " ".join(module.text_of(given).split()))


def _extreme(module: SourceModule, node: ast.expr, depth: int = 0) -> str:
    """"max" or "min" for `x.max()`, `torch.max(x)` and a name that holds one; "" for anything else, and along a dimension."""
    if isinstance(node, ast.Name) and depth == 0:
        function = module.function_of(node)
        value = only_value(bindings_in(module, function, node.id)) if function is not None else None
        return _extreme(module, value, 1) if value is not None else ""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return _extreme(module, node.func.value, depth)
    name = qualified(module, node.func)
    if node.keywords:
        return ""
    if isinstance(node.func, ast.Attribute) and not node.args:
        return _ENDS.get(node.func.attr, "")
    package, _, end = name.rpartition(".")
    return _ENDS.get(end, "") if len(node.args) == 1 and package in ("", "torch", "numpy") else ""
