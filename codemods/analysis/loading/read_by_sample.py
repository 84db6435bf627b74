"""Is a gathered value a row for each sample, by how it is read: at the number at which the batch has its samples?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.loading.rows_of_batch import batch_names, goes_by_sample
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk

_KEEPS = frozenset({"cpu", "detach", "float", "numpy", "tolist", "to"})
_ONCE = frozenset({"drop_duplicates", "duplicated"})


def is_read_by_sample(module: SourceModule, gather: ast.Call, loop: ast.For) -> bool:
    """True where `kept = gather(scores)` is read as `kept[i]` beside `batch["text"][i]`, for each `i` of the gathered rows."""
    kept = _taken_by(module, gather)
    if not kept or goes_by_sample(loop) or module.calls_named(*_ONCE):
        return False
    batch = batch_names(loop)
    for rows, number in _numbered(loop):
        read = {_root(n.value) for n in walk(rows) if isinstance(n, ast.Subscript) and dotted(n.slice) == number}
        if kept in read and read & batch:
            return True
    return False


def goes_beyond(module: SourceModule, loop: ast.For, gathers: tuple[ast.Call, ...]) -> bool:
    """True where lists of objects are gathered, too, and what goes through the rows may not end with the gathered tensors.

    `gather_object` cuts nothing: its lists would be longer than tensors that are cut.
    """
    if not any(isinstance(n, ast.Call) and last(dotted(n.func)) == "gather_object" for n in walk(loop)):
        return False
    kept = {_taken_by(module, g) for g in gathers} - {""}
    lengths = [_counted(rows.iter) for rows, _ in _numbered(loop)]
    return not lengths or any(name not in kept for name in lengths)


def _taken_by(module: SourceModule, gather: ast.Call) -> str:
    """The one name that takes the gathered rows, moved or not; "" where it is none."""
    up: ast.AST | None = module.parent(gather)
    while isinstance(up, (ast.Attribute, ast.Call)) and (isinstance(up, ast.Call) or up.attr in _KEEPS):
        up = module.parent(up)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""


def _numbered(loop: ast.For) -> Iterator[tuple[ast.For, str]]:
    """The loops `for i in range(len(rows))` in a loop, and what they count with."""
    for inner in (n for n in walk(loop) if isinstance(n, ast.For) and n is not loop):
        if isinstance(inner.target, ast.Name) and _counted(inner.iter):
            yield inner, inner.target.id


def _counted(node: ast.expr) -> str:
    """`rows` of `range(len(rows))`, `range(rows.shape[0])` and `range(rows.size(0))`; "" for anything else."""
    given = node.args[0] if isinstance(node, ast.Call) and dotted(node.func) == "range" and len(node.args) == 1 else None
    if isinstance(given, ast.Subscript) and isinstance(given.value, ast.Attribute) and given.value.attr == "shape":
        return _root(given.value.value) if ast.unparse(given.slice) == "0" else ""
    if not isinstance(given, ast.Call):
        return ""
    if dotted(given.func) == "len" and len(given.args) == 1:
        return _root(given.args[0])
    first = [ast.unparse(a) for a in given.args] == ["0"]
    of_rows = first and isinstance(given.func, ast.Attribute) and given.func.attr == "size"
    return _root(given.func.value) if of_rows and isinstance(given.func, ast.Attribute) else ""


def _root(node: ast.expr) -> str:
    """`data` of `data["text"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
