"""A pass over one loader of a list: those that it may be, and the loop that goes from one to the next."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.collected_loaders import elements, put_into
from codemods.files.source import SourceModule
from codemods.runtime.record import record


@record
class Listed:
    """made: what the list holds. over: the loop that takes one loader after the other, once in each round."""

    made: tuple[ast.expr, ...]
    over: ast.For


def listed(module: SourceModule, source: ast.expr) -> Listed | None:
    """Of `loader` in `for loader in loaders`, and of `loaders[i]` under `for i in …`, where all that is in the list is seen."""
    index = source.slice if isinstance(source, ast.Subscript) else source
    over = _loop_of(module, index)
    if over is None:
        return None
    made = put_into(module, source.value) if isinstance(source, ast.Subscript) else elements(module, source)
    return Listed(made, over) if made else None


def _loop_of(module: SourceModule, name: ast.expr) -> ast.For | None:
    """The loop round a name that alone gives it."""
    bound = bindings_of(module, name) if isinstance(name, ast.Name) else []
    loop = bound[0].node if len(bound) == 1 else None
    return loop if isinstance(loop, ast.For) and any(up is loop for up in module.ancestors(name)) else None
