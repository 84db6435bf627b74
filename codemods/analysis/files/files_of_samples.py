"""A cache file of one sample, in a data set whose samples a loader deals out: one rank makes it, and none else asks meanwhile."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_DEALING = (b"prepare_data_loader(", b"accelerator.prepare(", b"DistributedSampler(")
_OWN_NAMES = ("stem", "name")
_DEPTH = 3


def is_dealt_out(project: Project, module: SourceModule, function: FunctionNode, path: ast.expr) -> bool:
    """True in `__getitem__` for a path that is named by the index, or by the file that the index picks: `files[index].stem`.

    And in a method that it calls, and the constructor does not, for a path that is named by what it is handed.
    """
    if function.name == "__getitem__" and len(function.args.args) > 1:
        index = function.args.args[1].arg
        named = any(_names_sample(module, part, index) for part in _parts(module, path, _DEPTH))
    else:
        named = _is_of_one_sample(module, function) and _is_handed(module, function, path)
    return named and any(project.files_containing(word) for word in _DEALING)


def _is_of_one_sample(module: SourceModule, function: FunctionNode) -> bool:
    owner = module.parent(function)
    if not isinstance(owner, ast.ClassDef):
        return False
    methods = module.methods_of(owner)
    return function in called_by(methods, "__getitem__") and function not in called_by(methods, "__init__")


def called_by(methods: Mapping[str, FunctionNode], name: str) -> list[FunctionNode]:
    """The methods that a method of the same object comes to, itself first."""
    found = [methods[name]] if name in methods else []
    for one in found:
        called = (n.attr for n in walk(one) if isinstance(n, ast.Attribute) and dotted(n.value) == "self")
        found += [m for m in (methods[c] for c in dict.fromkeys(called) if c in methods) if m not in found]
    return found


def _is_handed(module: SourceModule, function: FunctionNode, path: ast.expr) -> bool:
    given = {a.arg for a in function.args.args[1:]}
    held = (v for part in _parts(module, path, _DEPTH) for v in (part, *_values(module, part)))
    return any(isinstance(n, ast.Name) and n.id in given for value in held for n in walk(value))


def _values(module: SourceModule, part: ast.expr) -> list[ast.expr]:
    return assigned(module, part, part.id) if isinstance(part, ast.Name) else []


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
