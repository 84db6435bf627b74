"""Is a value made from the batches that this rank has gone through? Followed by assignments, loops and what callers hand over.

For values that the variance analysis leaves open: what a method of a part gives back, say. A batch is known by its name, and by
the loop over a loader; what the ranks have put together is nobody's own.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project

_BATCHES = re.compile(r"(^|_)(batch(e?s)?|minibatch|batch_data)$")
_LOADERS = re.compile(r"(^|_)(data)?loaders?$|(^|_)batche?s$")
_TOGETHER = re.compile(r"gather|reduce|broadcast|sync")  # a call after which every rank has the same
_DEPTH = 7


def is_of_own_batch(project: Project, module: SourceModule, node: ast.expr, depth: int = _DEPTH) -> bool:
    """True for what is made from a batch, and not put together by the ranks since."""
    if depth < 0:
        return False
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Call):
            if joins_the_ranks(part) or dotted(part.func) == "len":
                continue
            if isinstance(part.func, ast.Attribute):  # what a tensor is asked, not whose method is called
                stack.append(part.func.value)
            stack += [*part.args, *part.keywords]
        elif isinstance(part, ast.Name):
            if isinstance(part.ctx, ast.Load) and _is_own(project, module, part, depth):
                return True
        else:
            stack += ast.iter_child_nodes(part)
    return False


def _is_own(project: Project, module: SourceModule, name: ast.Name, depth: int) -> bool:
    """Kept for each name: what a long function makes of its batches is bound many times, and each binding reads many others."""
    if module.function_of(name) is None or name.id in ("self", "cls"):
        return False
    key = ("own batch", module.path, name.lineno, name.col_offset, depth)
    return project.keep(key, lambda: _is_bound_to_own(project, module, name, depth))


def _is_bound_to_own(project: Project, module: SourceModule, name: ast.Name, depth: int) -> bool:
    for binding in bindings_of(module, name):
        if binding.parameter:
            if _BATCHES.search(name.id) or _is_handed(project, module, name, depth):
                return True
        elif isinstance(binding.node, (ast.For, ast.AsyncFor)):
            if _comes_of_batches(project, module, binding.node, name, depth):
                return True
        elif binding.value is not None and not any(n is name for n in walk(binding.value)):
            if is_of_own_batch(project, module, binding.value, depth - 1):
                return True
    return False


def _is_handed(project: Project, module: SourceModule, name: ast.Name, depth: int) -> bool:
    function = module.function_of(name)
    if function is None or depth < _DEPTH - 2:
        return False
    given = list(arguments(project, module, function, name.id))
    return 0 < len(given) <= 6 and all(is_of_own_batch(project, home, value, depth - 3) for home, value in given)


def _comes_of_batches(
    project: Project, module: SourceModule, loop: ast.For | ast.AsyncFor, name: ast.Name, depth: int
) -> bool:
    """True for a batch of the loop and what is in it; the count of the rounds is the same on every rank."""
    items, target = loop.iter, loop.target
    while isinstance(items, ast.Call) and items.args:
        end = _end(items.func)
        if end == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            if isinstance(target.elts[0], ast.Name) and target.elts[0].id == name.id:
                return False
            target = target.elts[1]
        elif end not in ("tqdm", "track", "iter"):
            break
        items = items.args[0]
    ended = last(dotted(items)) or (_end(items.func) if isinstance(items, ast.Call) else "")
    return _LOADERS.search(ended) is not None or is_of_own_batch(project, module, items, depth - 1)


def joins_the_ranks(call: ast.Call) -> bool:
    """True for a call after which every rank has the same, by its name: `all_reduce(loss)`, `self.all_gather(rows)`."""
    return _TOGETHER.search(_end(call.func)) is not None


def _end(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else last(dotted(func))
