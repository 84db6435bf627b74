"""Is each file of some statements named by what a batch says of its sample, where a loader deals the samples out?

`open(f"{batch['name'][i]}.json", "w")`: no other rank has the sample. Followed through unpacked batches, their parts, and the
names that are made of them. Their number, and the class of a sample, may be the same on two ranks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from codemods.analysis.files.file_calls import CHANGES, file_call
from codemods.analysis.files.items_of_a_loop import is_dealt_to_nobody
from codemods.analysis.files.named_by_items import LOADERS, deals_out_items
from codemods.analysis.files.shared_places import goes_backward
from codemods.analysis.loading.origins import BARS
from codemods.analysis.names import dotted, end_of, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ROUNDS = 4  # assignments that lead from the batch to the name, in any order
# What many samples have in common.
_IN_COMMON = lazy(r"class|cls|label|target|categor|split|type|task|domain|dataset|epoch|step|loss|acc", re.IGNORECASE)
_SIZES = frozenset({"shape", "size", "ndim", "dtype", "device", "numel", "dim"})
# What makes a text of a text, a path of it, or the open file.
_MAKES_NAMES = frozenset(
    {"join", "str", "int", "format", "Path", "basename", "splitext", "dirname", "normpath", "abspath", "open"}
)
_PAIRS = frozenset({"zip", "enumerate", "list", "tuple", "iter", "reversed", "sorted"})


def are_of_dealt_samples(project: Project, module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where all that the statements write is named so."""
    paths = list(_changed(module, statements))
    return bool(paths) and deals_out_items(project) and all(_is_of_a_sample(project, module, p) for p in paths)


def _changed(module: SourceModule, statements: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    for statement in statements:
        found = (file_call(module, n) for n in walk(statement) if isinstance(n, ast.Call))
        yield from (f.path for f in found if f is not None and f.act in CHANGES)


def _is_of_a_sample(project: Project, module: SourceModule, path: ast.expr) -> bool:
    for up in module.ancestors(path):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.For) and LOADERS.search(module.text_of(up.iter)):
            told = not goes_backward(up) and _holds(path, _told_of_samples(up))
            return told and not is_dealt_to_nobody(project, module, up.iter)
    return False


def _told_of_samples(loop: ast.For) -> set[str]:
    """The names in the loop that hold a batch, a part of it, or what is made of such a part."""
    names = set(_drawn(loop.target, loop.iter, None))
    inside = [n for s in loop.body for n in walk(s) if isinstance(n, (ast.Assign, ast.For, ast.withitem))]
    for _ in range(_ROUNDS):
        before = len(names)
        for node in inside:
            if isinstance(node, ast.For):
                names.update(_drawn(node.target, node.iter, names))
            elif isinstance(node, ast.withitem):
                if node.optional_vars is not None and _holds(node.context_expr, names):
                    names.update(_bound(node.optional_vars))
            elif _holds(node.value, names):
                names.update(n for target in node.targets for n in _bound(target))
        if len(names) == before:
            break
    return names


def _drawn(target: ast.expr, items: ast.expr, names: set[str] | None) -> Iterator[str]:
    """The names that a loop gives an item, not those that count. names: what such items come of; None for a loader's own."""
    called = last(dotted(items.func)) if isinstance(items, ast.Call) else ""
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if isinstance(items, ast.Call) and items.args and called in BARS:
        yield from _drawn(target, items.args[0], names)
    elif isinstance(items, ast.Call) and items.args and called == "enumerate":
        yield from _drawn(parts[1], items.args[0], names) if len(parts) == 2 else ()
    elif isinstance(items, ast.Call) and called == "zip":
        for part, given in zip(parts, items.args, strict=False):
            yield from _drawn(part, given, names)
    elif LOADERS.search(ast.unparse(items)) if names is None else _holds(items, names):
        yield from _bound(target)


def _bound(target: ast.expr) -> Iterator[str]:
    stored = (n.id for n in walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    yield from (name for name in stored if not _IN_COMMON.search(name))


def _holds(value: ast.expr, names: set[str]) -> bool:
    """True where an expression holds what such a name says of a sample."""
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.Call):
        inner: Iterable[ast.expr] = ()
        end = end_of(value.func)
        if end in _SIZES:
            return False
        if isinstance(value.func, ast.Attribute):
            inner = [value.func.value]
        if end in _MAKES_NAMES | _PAIRS:
            inner = [*inner, *value.args]
        return any(_holds(part, names) for part in inner)
    if isinstance(value, ast.Attribute):
        return value.attr not in _SIZES and not _IN_COMMON.search(value.attr) and _holds(value.value, names)
    if isinstance(value, ast.Subscript):
        key = value.slice
        common = isinstance(key, ast.Constant) and isinstance(key.value, str) and _IN_COMMON.search(key.value)
        return not common and _holds(value.value, names)
    if isinstance(value, (ast.BinOp, ast.JoinedStr, ast.FormattedValue, ast.Tuple, ast.List)):
        return any(_holds(part, names) for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))
    return False
