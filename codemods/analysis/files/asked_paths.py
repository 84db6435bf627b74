"""Tests for a path: by `os.path.exists` and its like, by `name in os.listdir(folder)`, and by functions of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.call_graph import FunctionSite, called_function
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_ASKING = lazy(r"exist|(?:is|has)_?(?:file|dir)|is_?cached|is_?there")


def asked(project: Project, module: SourceModule, test: ast.expr) -> Iterator[FileCall]:
    """What a test asks for."""
    for node in walk(test):
        found: FileCall | None = None
        if isinstance(node, ast.Compare):
            found = _by_a_listing(project, module, node)
        elif isinstance(node, ast.Call):
            found = file_call(module, node) or _by_a_helper(project, module, node)
        if found is not None and found.act is Act.ASKS:
            yield found


def only_makes_the_folder(module: SourceModule, call: ast.AST) -> bool:
    """True for the question in `if not folder.exists(): folder.mkdir(exist_ok=True)`: nobody needs what lies there."""
    if not isinstance(call, ast.Call) or (found := file_call(module, call)) is None or found.act is not Act.ASKS:
        return False
    test = module.parent(call)
    up = module.parent(test) if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if not isinstance(up, ast.If) or up.test is not test or up.orelse or len(up.body) != 1:
        return False
    only = up.body[0]
    made = file_call(module, only.value) if isinstance(only, ast.Expr) and isinstance(only.value, ast.Call) else None
    return made is not None and made.act is Act.MAKES and module.text_of(made.path) == module.text_of(found.path)


def text_of_path(module: SourceModule, path: ast.expr) -> str:
    """The path in one line, as it is written, or as its parts are joined where nothing of the file writes it."""
    return " ".join((module.text_of(path) if module.parent(path) is not None else ast.unparse(path)).split())


def is_question(module: SourceModule, listing: ast.AST) -> bool:
    """True for the list of a folder in `name in os.listdir(folder)`: what lies there is not read."""
    test = module.parent(listing)
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.In, ast.NotIn)) and test.comparators[0] is listing


def _by_a_listing(project: Project, module: SourceModule, test: ast.Compare) -> FileCall | None:
    """`name in os.listdir(folder)`, which asks for `folder / name`."""
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    listing = test.comparators[0]
    if not isinstance(listing, ast.Call) or qualified(module, listing.func) != "os.listdir" or len(listing.args) != 1:
        return None
    folder = listing.args[0]
    key = ("asked by a listing", module.path, test.lineno, test.col_offset)
    path = project.memo(key, lambda: ast.copy_location(ast.BinOp(folder, ast.Div(), test.left), test))
    return FileCall(listing, path, Act.ASKS)


def _by_a_helper(project: Project, module: SourceModule, call: ast.Call) -> FileCall | None:
    """`file_exists(path)`, where that function returns the answer for its parameter."""
    end = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    if not call.args or not _ASKING.search(end):
        return None
    site = called_function(project, module, call)
    if site is None:
        return None
    name = _parameter_asked_for(site)
    path = arguments_of(site.node, call).get(name) if name else None
    return FileCall(call, path, Act.ASKS) if path is not None else None


def _parameter_asked_for(site: FunctionSite) -> str:
    for node in walk_scope(site.node):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        for call in (n for n in walk(node.value) if isinstance(n, ast.Call)):
            found = file_call(site.module, call)
            path = found.path if found is not None and found.act is Act.ASKS else None
            if path is None and call.args and isinstance(call.func, ast.Attribute) and last(call.func.attr) == "exists":
                path = call.args[0]  # `fs.exists(path)` of a file system
            if isinstance(path, ast.Name):
                return path.id
    return ""
