"""Does the path that a program asks for lie in the repository itself? Then every rank finds it, and none fetches or makes it."""

from __future__ import annotations

import ast
from posixpath import dirname, join, normpath

from codemods.analysis.bindings import bindings_at_top, bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.files.file_flow import holder_of
from codemods.analysis.files.file_paths import OWN_FILE, forms, outside
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_JOINS = frozenset({"os.path.join", "posixpath.join", "pathlib.Path"})
_UP = 2


def lies_in_repository(project: Project, module: SourceModule, path: ast.expr) -> bool:
    """True where each file that the path may name is there: `cache/vgg.pth` beside the module, or from the root.

    `os.path.join(root, NAMES[name])` is one of the files that the table NAMES has, in a folder that the callers say.
    """
    parts = _parts(module, path)
    if parts is None:
        return False
    folder, names = parts
    if folder is None:
        return all(_is_there(project, module, name) for name in names)
    function = module.function_of(path) or module.function_of(folder)  # the path may be joined of two parts of a test
    places = _folders(project, module, function, forms(module, folder), _UP)
    return bool(places) and all(_is_there(project, module, join(place, name)) for place in places for name in names)


def _is_there(project: Project, module: SourceModule, path: str) -> bool:
    """True for a file or folder of the repository; what is no path from its root counts from the folder of the program, too."""
    if path.startswith(OWN_FILE):
        return _holds(project, normpath(path[len(OWN_FILE) :]))
    return "<" not in path and (_holds(project, normpath(path)) or _holds(project, normpath(join(dirname(module.path), path))))


def _holds(project: Project, path: str) -> bool:
    return path in project.files


def _parts(module: SourceModule, path: ast.expr, depth: int = 3) -> tuple[ast.expr | None, frozenset[str]] | None:
    """The folder, None where there is none, and the names that the file may have in it."""
    if isinstance(path, ast.Name):
        bound = bindings_of(module, path)
        value = bound[0].value if len(bound) == 1 and not bound[0].part and not bound[0].parameter else None
        return _parts(module, value, depth - 1) if value is not None and depth else None
    if isinstance(path, ast.Call) and qualified(module, path.func) in _JOINS and path.args:
        if len(path.args) == 1:
            return _parts(module, path.args[0], depth - 1) if depth else None
        names = _texts(module, path.args[-1])
        folder = path.args[0] if len(path.args) == 2 else ast.Call(path.func, path.args[:-1], [])
        return (folder, names) if names else None
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return (path.left, names) if (names := _texts(module, path.right)) else None
    names = _texts(module, path)
    return (None, names) if names else None


def _texts(module: SourceModule, node: ast.expr) -> frozenset[str]:
    """The texts that an expression may be: a literal, or any that a table of the module holds; none where that is open."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return frozenset({node.value})
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        bound = bindings_at_top(module, node.value.id)
        table = bound[0].value if len(bound) == 1 else None
        values = table.values if isinstance(table, ast.Dict) else []
        texts = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
        return frozenset(texts) if len(texts) == len(values) else frozenset()
    return frozenset()


def _folders(
    project: Project, module: SourceModule, function: FunctionNode | None, said: frozenset[str], up: int
) -> frozenset[str]:
    """The folder in the words of the callers, where it hangs on parameters; none where one of them leaves it open."""
    if plain := [form for form in said if form.startswith(OWN_FILE) or "<" not in form]:
        return frozenset(plain[:1])
    if function is None or not up:
        return frozenset()
    found: set[str] = set()
    for site in callers_of(project, module, function):
        holder = holder_of(site.module, site.call, FunctionSite(module, function))
        given = frozenset[str]().union(*(outside(f, function, module, site.module, site.call, holder) for f in said))
        there = _folders(project, site.module, site.module.function_of(site.call), given, up - 1)
        if not there:
            return frozenset()
        found |= there
    return frozenset(found)
