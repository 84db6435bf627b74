"""A cache file of one sample, in a data set whose samples a loader deals out: one rank makes it, and none else asks meanwhile."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEALING = (b"prepare_data_loader(", b"accelerator.prepare(", b"DistributedSampler(")
_OWN_NAMES = ("stem", "name")
_DEPTH = 3


def is_dealt_out(project: Project, module: SourceModule, function: FunctionNode, path: ast.expr) -> bool:
    """True in `__getitem__` for a path that is named by the index, or by the file that the index picks: `files[index].stem`."""
    if function.name != "__getitem__" or len(function.args.args) < 2:
        return False
    index = function.args.args[1].arg
    if not any(_names_sample(module, part, index) for part in _parts(module, path, _DEPTH)):
        return False
    return any(project.files_containing(word) for word in _DEALING)


def _parts(module: SourceModule, path: ast.expr, depth: int) -> Iterator[ast.expr]:
    """What a path is joined from: names by their values, calls of a path's own but none of a hash, which equal samples share."""
    if isinstance(path, ast.Name) and depth > 0 and (values := assigned(module, path, path.id)):
        for value in values:
            yield from _parts(module, value, depth - 1)
        return
    yield path
    inner: list[ast.expr] = []
    if isinstance(path, ast.BinOp):
        inner = [path.left, path.right]
    elif isinstance(path, ast.JoinedStr):
        inner = [v.value for v in path.values if isinstance(v, ast.FormattedValue)]
    elif isinstance(path, ast.Call):
        name = path.func.attr if isinstance(path.func, ast.Attribute) else path.func.id if isinstance(path.func, ast.Name) else ""
        inner = list(path.args) if name in ("join", "joinpath", "Path", "str") else []
    for part in inner:
        yield from _parts(module, part, depth)


def _names_sample(module: SourceModule, part: ast.expr, index: str) -> bool:
    if isinstance(part, ast.Name):
        return part.id == index
    if not isinstance(part, ast.Attribute) or part.attr not in _OWN_NAMES:
        return False
    held = [part.value] if not isinstance(part.value, ast.Name) else assigned(module, part.value, part.value.id)
    picked = (n.slice for value in held for n in walk(value) if isinstance(n, ast.Subscript))
    return any(isinstance(s, ast.Name) and s.id == index for s in picked)
