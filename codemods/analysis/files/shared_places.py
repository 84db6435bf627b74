"""Is a path named after the item of a loop? Then it is that item's file, and the items may be shared out among the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.names import dotted, end_of, is_parameter, last
from codemods.analysis.paths import counts, without_bar
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_DEPTH = 3
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_TRAINS = frozenset({"backward", "manual_backward"})
_COUNTS = ("epoch", "step", "stage", "fold", "split", "task", "phase", "iter", "round")


def is_of_one_item(project: Project, module: SourceModule, path: ast.expr, depth: int = _DEPTH) -> bool:
    """True where a name of the path is the target of a loop whose items are not written there, here or at a caller."""
    for node in _names(module, path, depth):
        loop = _loop_of(module, node)
        if loop is not None:
            if not _is_same_for_all(module, loop, node.id):
                return True
            continue
        if depth == 0 or not is_parameter(module, node.id, node):
            continue
        function = module.function_of(node)
        for site in callers_of(project, module, function) if function is not None else ():
            given = arguments_of(function, site.call).get(node.id) if function is not None else None
            if given is not None and is_of_one_item(project, site.module, given, depth - 1):
                return True
    return False


def _names(module: SourceModule, value: ast.expr, depth: int) -> Iterator[ast.Name]:
    # what a comprehension goes through makes the parts of something else
    inner = {id(n) for c in walk(value) if isinstance(c, _COMPREHENSIONS) for n in walk(c)}
    for node in walk(value):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            yield node
            for given in assigned(module, node, node.id)[:4] if depth > 0 else ():
                yield from _names(module, given, depth - 1)


def _loop_of(module: SourceModule, name: ast.Name) -> ast.For | ast.AsyncFor | ast.comprehension | None:
    """The loop round a name that gives it its values."""
    for up in module.ancestors(name):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        loops = [up] if isinstance(up, (ast.For, ast.AsyncFor)) else up.generators if isinstance(up, _COMPREHENSIONS) else []
        for loop in loops:
            if any(isinstance(n, ast.Name) and n.id == name.id for n in walk(loop.target)):
                return loop
    return None


def _is_same_for_all(module: SourceModule, loop: ast.For | ast.AsyncFor | ast.comprehension, name: str) -> bool:
    """True for what stands in the source, for epochs and steps that are counted, and for the steps of a loop that trains."""
    if counts(module, loop.iter, name):
        return not isinstance(loop, ast.comprehension) and goes_backward(loop)
    items = without_bar(loop.iter)[0] if last(dotted(getattr(loop.iter, "func", None))) == "tqdm" else loop.iter
    return _is_written_out(module, items, name)


def goes_backward(loop: ast.For | ast.AsyncFor) -> bool:
    calls = (n for s in loop.body for n in walk(s) if isinstance(n, ast.Call))
    return any(end_of(c.func) in _TRAINS for c in calls)


def _is_written_out(module: SourceModule, items: ast.expr, name: str) -> bool:
    if isinstance(items, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
        return True
    if isinstance(items, ast.Name):
        given = assigned(module, items, items.id)
        shown = (ast.List, ast.Tuple, ast.Dict)
        return bool(given) and all(isinstance(v, shown) or _is_counted(v, name) for v in given)
    return _is_counted(items, name)


def _is_counted(items: ast.expr, name: str) -> bool:
    called = last(dotted(items.func)) if isinstance(items, ast.Call) else ""
    if called == "tqdm" and isinstance(items, ast.Call) and items.args:
        return _is_counted(items.args[0], name)
    return called in ("range", "trange", "count") and any(word in name.lower() for word in _COUNTS)
