"""Helpers of the project that give back what they are handed, with a progress bar round it on some ranks."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import behind_bar, parameters, unpacked
from codemods.files.source import walk_scope


def is_handed(source: ast.expr, targets: dict[int, FunctionSite]) -> bool:
    """True for a loop over a name, or over what such a helper makes of one: `for batch in bar(loader)`."""
    inner = unpacked(source)
    if isinstance(inner, ast.Call) and inner.args and id(inner) in targets and _is_bar(targets[id(inner)]):
        inner = inner.args[0]
    return dotted(inner) != ""


def _is_bar(site: FunctionSite) -> bool:
    given = [n.value for n in walk_scope(site.node) if isinstance(n, ast.Return)]
    first = parameters(site.node)[:1]
    return bool(given) and all(v is not None and (dotted(behind_bar(v)),) == first for v in given)
