"""Is a file written anew for each batch under one name? Then it holds one batch with one process, too: it is there to look at."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import FileCall
from codemods.analysis.files.opened_paths import opened_by
from codemods.analysis.names import dotted, last
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.paths import unpacked
from codemods.analysis.variance.values import Kind
from codemods.files.source import SourceModule, called_name, walk
from codemods.store.project import Project

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PUTS_TOGETHER = frozenset({"join", "Path", "str", "format"})


def keeps_one_batch(project: Project, module: SourceModule, file: FileCall) -> bool:
    """True in a loop over batches in which the path stays what it is, and each round writes the whole file anew."""
    loop = next((up for up in module.ancestors(file.call) if isinstance(up, (ast.For, ast.While, *_FUNCTIONS))), None)
    if loop is None or isinstance(loop, _FUNCTIONS) or _adds(module, file.call):
        return False
    if not _takes_batches(project, module, loop):
        return False  # what a round of epochs writes is of the whole share
    given = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in (file.path, *walk(file.path)):
        if isinstance(node, ast.Name) and node.id in given:
            return False
        if isinstance(node, ast.Call) and (last(dotted(node.func)) or getattr(node.func, "attr", "")) not in _PUTS_TOGETHER:
            return False
    return True


def _takes_batches(project: Project, module: SourceModule, loop: ast.For | ast.While) -> bool:
    """True for a loop over a loader or the rank's own rows, and for one that asks for the next batch itself."""
    if any(isinstance(n, ast.Call) and dotted(n.func) == "next" for n in walk(loop)):
        return True
    if isinstance(loop, ast.While):
        return False
    source = variance(project).value(module, unpacked(loop.iter))
    return source.kind is Kind.LOADER or source.is_of_own_data



def _adds(module: SourceModule, call: ast.Call) -> bool:
    """True where lines are added to what is there already, or where that is not seen."""
    if called_name(call) == "open":
        mode = opened_by(module, call).mode
        return not isinstance(mode, ast.Constant) or "w" not in str(mode.value)
    words = (k.value for k in call.keywords if k.arg == "mode")
    return any(not isinstance(w, ast.Constant) or w.value == "a" for w in words)
