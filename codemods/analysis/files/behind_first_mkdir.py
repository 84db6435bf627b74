"""Does a folder that only one rank can make stand above a write? `path.mkdir()` ends all ranks but the first.

They meet FileExistsError there: the write below it is that one rank's alone, and nobody knows which rank that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.folder_calls import creates_folder, folder_of, gives_exist_ok
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.names import dotted
from codemods.analysis.output.run_before import run_before
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

_STEPS = 3
_UP = 2


def is_behind_first_mkdir(module: SourceModule, place: ast.AST, paths: Sequence[ast.expr]) -> bool:
    """True where a statement that has run above `place` makes the folder of one of the paths, and minds one that is there."""
    if not module.holds(b"mkdir(") and not module.holds(b"makedirs("):
        return False
    statement = module.statement_of(place)
    made = list(_folders_above(module, statement))
    if not made:
        return False
    return bool({text for path in paths for text in _parts(module, path, _STEPS)} & set(made))


def is_called_behind_first_mkdir(
    project: Project, module: SourceModule, place: ast.AST, paths: Sequence[ast.expr], up: int = _UP
) -> bool:
    """The same for all calls that lead to `place`, the folder and the path in the words of the caller."""
    function = module.function_of(place)
    if function is None or not up or not paths:
        return False
    sites = callers_of(project, module, function)
    return bool(sites) and all(_is_behind(project, module, function, site, paths, up) for site in sites)


def _is_behind(
    project: Project, module: SourceModule, function: FunctionNode, site: CallSite, paths: Sequence[ast.expr], up: int
) -> bool:
    given = arguments_of(function, site.call)
    carried = [given[n.id] for path in paths for n in walk(path) if isinstance(n, ast.Name) and n.id in given]
    owner = module.class_of(function)
    if owner is not None and owner is site.module.class_of(site.call) and dotted(site.call.func).startswith("self."):
        carried += [path for path in paths if dotted(path).startswith("self.")]
    if is_behind_first_mkdir(site.module, site.call, carried):
        return True
    return is_called_behind_first_mkdir(project, site.module, site.call, carried, up - 1)


def _folders_above(module: SourceModule, statement: ast.stmt) -> Iterator[str]:
    function = module.function_of(statement)
    for above in run_before(module, statement):
        call = above.value if isinstance(above, ast.Expr) else None
        if not isinstance(call, ast.Call) or module.function_of(above) is not function:
            continue
        spelling = creates_folder(module, call)
        folder = folder_of(call, spelling) if spelling and not gives_exist_ok(module, call, spelling) else None
        if folder is not None and dotted(folder) and not _is_put_up_with(module, above):
            yield dotted(folder)


def _is_put_up_with(module: SourceModule, above: ast.stmt) -> bool:
    """True in a `try` with handlers: the other ranks may go on there."""
    ups = [up for up in module.ancestors(above) if isinstance(up, (ast.Try, ast.TryStar))]
    return any(up.handlers for up in ups)


def _parts(module: SourceModule, path: ast.expr, steps: int) -> Iterator[str]:
    """The names that a path is made of, and those that they were made of."""
    for node in walk(path):
        if isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(node)):
            yield name
            if steps and (isinstance(node, ast.Name) or name.startswith("self.")):
                for value in assigned(module, node, name)[:3]:
                    yield from _parts(module, value, steps - 1)
