"""Is a file taken along without being used: does no other file import it, no setting name it, and is it no program itself?

A vendored package brings whole folders of which a repository uses a few files.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from posixpath import basename, dirname

from codemods.analysis.importing import users_of
from codemods.analysis.names import dotted, last
from codemods.files.import_statements import stem_of
from codemods.files.source import SourceModule
from codemods.files.text_file import SHELL_KINDS
from codemods.store.project import Project

_MOST = 12  # files over which it is asked who imports what imports this one
_BY_TEXT = ("import_module", "__import__", "iter_modules", "walk_packages", "spec_from_file_location", "exec", "run_path",
            "run_module")  # fmt: skip
_ELSEWHERE = (".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".json", ".md", ".rst", *SHELL_KINDS)


def is_unused(project: Project, path: str) -> bool:
    """True for a file that no program of the repository imports, directly or over others that are unused as well.

    False where an import by a text that is not written out may mean it.
    """
    return project.keep(("unused module", path), lambda: _is_unused(project, path))


def _is_unused(project: Project, path: str) -> bool:
    todo, seen = [path], {path}
    while todo:
        here = todo.pop()
        module = project.module(here)
        if module is None or len(seen) > _MOST or _may_be_run(module) or _is_reached(project, here):
            return False
        new = [user for user in users_of(project, here) if user not in seen]
        seen.update(new)
        todo += new
    return True


def _may_be_run(module: SourceModule) -> bool:
    """True for a script, and for a package's own file: what imports anything of the package runs it."""
    if basename(module.path) in ("__init__.py", "__main__.py", "setup.py", "conftest.py") or not module.path.endswith(".py"):
        return True
    does = any(isinstance(s, (ast.Expr, ast.For, ast.While, ast.With)) and not _is_text(s) for s in module.tree.body)
    return does or "__main__" in module.text


def _is_reached(project: Project, path: str) -> bool:
    return _is_named(project, path) or any(path.startswith(folder) for folder in _folders_by_text(project))


def _folders_by_text(project: Project) -> frozenset[str]:
    """The folders of which files are imported by texts that are not written out: all, where such a text is no relative one."""

    def build() -> frozenset[str]:
        files = sorted({p for word in _BY_TEXT for p in project.files_containing(f"{word}(".encode())})
        return frozenset(f for p in files if (module := project.module(p)) is not None for f in _folders_of(module))

    return project.keep("folders imported by text", build)


def _folders_of(module: SourceModule) -> Iterator[str]:
    words = set(_BY_TEXT) - {f.name for f in module.functions}  # a function of the file's own may be called `exec`
    for call in module.nodes(ast.Call):
        if last(dotted(call.func)) in words and not (call.args and isinstance(call.args[0], ast.Constant)):
            yield f"{dirname(module.path)}/".lstrip("/") if _is_relative(call) else ""


def _is_relative(call: ast.Call) -> bool:
    """True for `import_module("." + name, __name__)` and `import_module(f".{name}", package=__package__)`."""
    name = call.args[0] if call.args else None
    while isinstance(name, ast.BinOp):
        name = name.left
    name = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else name
    package = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "package")]
    begins = isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.startswith(".")
    dots = begins and isinstance(name, ast.Constant) and str(name.value).startswith("..")
    return begins and not dots and any(dotted(p) in ("__name__", "__package__") for p in package)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_named(project: Project, path: str) -> bool:
    """True where a text, a setting, a script, a notebook or a string of the Python spells the file behind its folder."""
    stem, folder = re.escape(stem_of(path)), re.escape(basename(dirname(path)))
    words = rf"\b{folder}[./]{stem}\b" if folder else rf"(?<![\w.])(?:import +{stem}\b|{stem}[.:]\w)"
    spelled = re.compile(os.fsencode(words))
    texts = project.files_containing(os.fsencode(stem_of(path)), kinds=_ELSEWHERE)
    if any(spelled.search(project.read_text(p) or b"") for p in texts):
        return True
    imported = re.compile(os.fsencode(rf"""\b(?:from\s+\S*{folder}\s+import|import)\s[^\n"\\]*\b{stem}\b"""))
    if any(imported.search(project.read_text(p) or b"") for p in texts if p.endswith(".ipynb")):
        return True
    quoted = re.compile(os.fsencode(rf"""["'][\w.]*\b{folder}\.{stem}\b""" if folder else rf"""["']{stem}[.:"']"""))
    return any(quoted.search(project.read(p) or b"") for p in project.files_containing(os.fsencode(stem_of(path))))
