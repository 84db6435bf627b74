"""Which part of a call of `open` is the path, and which the mode: of `open(path, mode)`, `path.open(mode)` and others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_MODE = lazy(r"[rwaxbtU+]{1,3}")
_ARCHIVES = frozenset({"ZipFile", "TarFile", "tarfile.open"})


@record
class Opened:
    """path: None where it is no argument of its own. mode: None where none is given, and the file is read."""

    path: ast.expr | None
    mode: ast.expr | None


def opened_by(module: SourceModule, call: ast.Call, *, with_path: bool = False) -> Opened:
    """What `open` is told, by the arguments: a first one beside a mode is the path, whatever object or package opens it.

    with_path: it is known for a function that takes a path first.
    """
    first = call.args[0] if call.args else None
    mode = next((k.value for k in call.keywords if k.arg == "mode"), None)
    if with_path or not isinstance(call.func, ast.Attribute) or _is_of_module(module, call.func):
        mode = mode or _at(call, 1)
        is_known = with_path or qualified(module, call.func) == "open" or isinstance(call.func, ast.Attribute)
        return Opened(first if is_known or (mode is not None and is_mode(mode)) else None, mode)
    if takes_path(call):
        return Opened(None if _is_of_archive(module, call.func.value) else first, mode or _at(call, 1))
    is_named = isinstance(first, ast.Constant) and not is_mode(first)  # `archive.open("index.txt")`
    return Opened(None if is_named else call.func.value, mode or first)


def takes_path(call: ast.Call) -> bool:
    """True for a method that is handed a path and a mode: `store.open(path, "wb")`, `store.open(path, mode="wb")`.

    One argument alone may be either, `path.open(mode)`; a first one that is spelled as a mode is one.
    """
    if not call.args or not isinstance(call.func, ast.Attribute) or is_mode(call.args[0]):
        return False
    return any(k.arg == "mode" for k in call.keywords) or (len(call.args) > 1 and is_mode(call.args[1]))


def is_mode(node: ast.expr) -> bool:
    """True for the text of a mode: `"w"`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_MODE.fullmatch(node.value))


def _at(call: ast.Call, position: int) -> ast.expr | None:
    return call.args[position] if len(call.args) > position else None


def _is_of_module(module: SourceModule, func: ast.Attribute) -> bool:
    """True for the function of a module that is imported under its own name: `fsspec.open`, and not `paths.LOG.open`."""
    return qualified(module, func).rpartition(".")[0] in module.imports


def _is_of_archive(module: SourceModule, receiver: ast.expr) -> bool:
    """True for an archive that is open already: what it is handed names a part of it."""
    makers = (v.func for v in _made(module, receiver) if isinstance(v, ast.Call))
    return any(last(dotted(f)) in _ARCHIVES or dotted(f) in _ARCHIVES for f in makers)


def _made(module: SourceModule, receiver: ast.expr) -> Iterator[ast.expr]:
    name = dotted(receiver)
    yield from assigned(module, receiver, name) if name else ()
    for up in module.ancestors(receiver):
        for item in up.items if isinstance(up, (ast.With, ast.AsyncWith)) else ():
            if name and dotted(item.optional_vars) == name:
                yield item.context_expr
