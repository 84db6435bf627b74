"""Folders that are there before any rank asks for them: made above the start of the processes, or by a program's entry."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.files.every_rank import is_of_the_starter
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_MAKES = ("makedirs", "mkdir")


def is_made_above(project: Project, module: SourceModule, call: ast.Call, path: ast.expr) -> bool:
    """True where the process that starts the others, or the program's entry, makes a folder of that name in the same file.

    path: the folder of `call`, which stands under a test that it is missing: that test fails then.
    """
    function = module.function_of(call)
    if function is None or function.name == "main":
        return False
    names = set(_names(project, module, function, path))
    for other in module.calls_named(*_MAKES):
        if other is call or not other.args or last(dotted(other.args[0])) not in names:
            continue
        home = module.function_of(other)
        entry = home is None or (home.name == "main" and isinstance(module.parent(home), ast.Module))
        if home is not function and (entry or is_of_the_starter(project, module, other)):
            return True
    return False


def _names(project: Project, module: SourceModule, function: FunctionNode, path: ast.expr) -> Iterator[str]:
    """What the folder is called where it is handed over: the last name of the argument, or of what that is put together from."""
    while isinstance(path, ast.Call) and last(dotted(path.func)) in ("dirname", "str", "Path") and path.args:
        path = path.args[0]
    if not isinstance(path, ast.Name):
        return
    arguments = [a.arg for a in function.args.args]
    if path.id not in arguments:
        return
    own = arguments[:1] in (["self"], ["cls"])
    at = arguments.index(path.id) - own
    for site in callers_of(project, module, function):
        given = next((k.value for k in site.call.keywords if k.arg == path.id), None)
        given = site.call.args[at] if given is None and 0 <= at < len(site.call.args) else given
        for part in walk(given) if given is not None else ():
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
                yield part.attr
            elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
                yield str(part.slice.value)
