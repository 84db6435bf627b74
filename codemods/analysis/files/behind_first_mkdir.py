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
from codemods.analysis.names import dotted, last
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
    names = {dotted(folder) for folder in made if dotted(folder)}
    if names & {text for path in paths for text in _parts(module, path, _STEPS)}:
        return True
    below = [f"{form}/" for folder in made if (form := _form(module, folder).rstrip("/"))]
    written = [_form(module, p) for path in paths for p in (path, *_made_of(module, path))] if below else []
    return any(form.startswith(folder) for form in written for folder in below)


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


def _made_of(module: SourceModule, path: ast.expr) -> list[ast.expr]:
    """What a plain name is given, where that is one value."""
    values = assigned(module, path, path.id) if isinstance(path, ast.Name) else []
    return values if len(values) == 1 else []


def _form(module: SourceModule, path: ast.expr) -> str:
    """A path as one text, however it is put together, with the names in it as they are written."""
    if isinstance(path, ast.Constant):
        return str(path.value)
    if isinstance(path, ast.JoinedStr):
        return "".join(_form(module, v) for v in path.values)
    if isinstance(path, ast.FormattedValue):
        return _form(module, path.value) if path.format_spec is None else f"<{module.text_of(path.value)}>"
    if isinstance(path, ast.BinOp) and isinstance(path.op, (ast.Add, ast.Div)):
        between = "/" if isinstance(path.op, ast.Div) else ""
        return _form(module, path.left) + between + _form(module, path.right)
    if isinstance(path, ast.Call) and path.args and not path.keywords:
        if last(dotted(path.func)) in ("join", "Path", "str", "fspath"):
            return "/".join(_form(module, a).rstrip("/") for a in path.args)
    return f"<{module.text_of(path)}>"


def _folders_above(module: SourceModule, statement: ast.stmt) -> Iterator[ast.expr]:
    function = module.function_of(statement)
    for above in run_before(module, statement):
        call = above.value if isinstance(above, ast.Expr) else None
        if not isinstance(call, ast.Call) or module.function_of(above) is not function:
            continue
        spelling = creates_folder(module, call)
        folder = folder_of(call, spelling) if spelling and not gives_exist_ok(module, call, spelling) else None
        if folder is not None and not _is_put_up_with(module, above):
            yield folder


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
