"""Where a function is fetched from its module by a text that begins or ends as its name: `getattr(comm, f"init_{kind}")`.

Asked from the function (who may fetch it?), and from the call (which functions may it run?).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, qualified
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record
from codemods.store.project import Project

_FEWEST = 4  # letters of the name that are written out: fewer fit too much


@record
class Fetched:
    """call: the `getattr` that may give the function."""

    module: SourceModule
    call: ast.Call


def fetched_at(project: Project, module: SourceModule, function: FunctionNode) -> Iterator[Fetched]:
    """The places that may fetch a function of the top of a file by a text that is put together."""
    if not isinstance(module.parent(function), ast.Module):
        return
    holders = set(project.files_containing(os.fsencode(stem_of(module.path))))
    for path in sorted(holders & set(project.files_containing(b"getattr("))):
        other = project.module(path) if path.endswith(PYTHON_KINDS) and not is_test_file(path) else None
        for call in other.calls_named("getattr") if other is not None else ():
            if other is not None and len(call.args) > 1 and _fits(call.args[1], function.name):
                if _is_of(project, other, call.args[0], module):
                    yield Fetched(other, call)


def fetched_by(project: Project, module: SourceModule, call: ast.Call) -> Iterator[FunctionSite]:
    """The functions of which a call may run one: `getattr(comm, "init_%s" % kind)(port)`, at once or by a name."""
    fetch = call.func
    if isinstance(fetch, ast.Name):
        bound = bindings_of(module, fetch)
        fetch = bound[0].value if len(bound) == 1 and bound[0].value is not None else fetch
    if not isinstance(fetch, ast.Call) or dotted(fetch.func) != "getattr" or len(fetch.args) < 2:
        return
    home = _module_of(project, module, fetch.args[0])
    for statement in home.tree.body if home is not None and _ends(fetch.args[1]) is not None else ():
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and _fits(fetch.args[1], statement.name):
            assert home is not None
            yield FunctionSite(home, statement)


def _module_of(project: Project, module: SourceModule, holder: ast.expr) -> SourceModule | None:
    """The file of the project that an imported name, or a dotted one, stands for."""
    root = dotted(holder).partition(".")[0]
    if not root or root not in module.imports:
        return None
    resolved = project.resolve(qualified(module, holder), module.path)
    return project.module(resolved.path) if resolved is not None and not resolved.rest else None


def _is_of(project: Project, module: SourceModule, holder: ast.expr, home: SourceModule) -> bool:
    """True where the expression is the module of `home`."""
    root = dotted(holder).partition(".")[0]
    if not root or root not in module.imports:
        return False
    resolved = project.resolve(qualified(module, holder), module.path)
    return resolved is not None and resolved.path == home.path and not resolved.rest


def _fits(text: ast.expr, name: str) -> bool:
    """True for a text of which only a part is known, where the name has this part."""
    known = _ends(text)
    if known is None:
        return False
    first, final = known
    return len(first + final) >= _FEWEST and len(name) > len(first + final) and name.startswith(first) and name.endswith(final)


def _ends(text: ast.expr) -> tuple[str, str] | None:
    """(how it begins, how it ends), as far as that is written out."""
    if isinstance(text, ast.JoinedStr):
        return (_constant(text.values[0]), _constant(text.values[-1])) if len(text.values) > 1 else None
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        return _constant(text.left), _constant(text.right)
    form = ""
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Mod):
        form = _constant(text.left).replace("%s", "{}")
    elif isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) and text.func.attr == "format":
        form = _constant(text.func.value)
    first, hole, final = form.partition("{}")
    return (first, final) if hole and "{" not in final else None


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
