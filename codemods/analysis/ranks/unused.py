"""Functions of a repository of scripts that nothing in it comes to: no rank is known to run them."""

from __future__ import annotations

import ast
import re

from codemods.analysis.conditions import is_main_block
from codemods.analysis.names import family
from codemods.analysis.ranks.uses import MANY_FILES, calls_of
from codemods.files.source import FunctionNode, SourceModule, called_name, walk
from codemods.store.corpus import uses
from codemods.store.project import Project

_PACKAGED = ("pyproject.toml", "setup.py", "setup.cfg")
_RUNNERS = frozenset({"fire", "typer", "click", "invoke", "fabric", "plac", "jsonargparse"})  # they come to functions by name
ELSEWHERE = (".ipynb", ".yaml", ".yml", ".sh", ".toml", ".cfg")


def is_never_run(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a plain function at the top of a script that the project neither calls, hands on nor speaks of.

    A library's functions are there for others, `main` for who starts the file, and a file that is no script may be used from
    anywhere. Dear where many files hold the name: to be asked of what would be reported.
    """
    if module.parent(function) is not module.tree or function.decorator_list or function.name == "main":
        return False
    name = function.name.encode()
    if not module.holds(b"__main__") or uses(module.data, name) or module.holds(b"globals()") or module.holds(b"__name__]"):
        return False
    if is_of_a_library(project, module.path) or is_run_by_name(module):
        return False
    return calls_of(project, module, function) == () and not is_named(project, name)


def is_passed_over(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a `main` that nobody calls, in a script whose block under `__main__` runs another function of the file."""
    blocks = [s for s in module.tree.body if is_main_block(s)]
    own = {f.name for f in module.functions if f is not function and module.parent(f) is module.tree}
    others = any(isinstance(n, ast.Call) and called_name(n) in own for block in blocks for n in walk(block))
    if not others or module.reads_of(function.name) or is_packaged(project, module.path) or is_run_by_name(module):
        return False
    stem = module.path.rpartition("/")[2].removesuffix(".py")
    return all(p == module.path for p in project.files_importing(stem))


def is_run_by_name(module: SourceModule) -> bool:
    """True where the file imports what runs functions by the names that a person gives on the command line."""
    return any(family(name) in _RUNNERS for name in module.imported_modules)


def is_of_a_library(project: Project, path: str) -> bool:
    """True below the files of a package, but for a program in it that no other file imports."""
    stem = path.rpartition("/")[2].removesuffix(".py")
    if all(p == path for p in project.files_importing(stem)):
        return False
    return is_packaged(project, path)


def is_packaged(project: Project, path: str) -> bool:
    """True for a file at or below which a package is set up: others may install it, and use what it hands out."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if any(f"{folder}/{mark}".lstrip("/") in project.files for mark in _PACKAGED):
            return True
    return False


def is_named(project: Project, name: bytes) -> bool:
    """True where a string of the project's Python may be the function's name, or a notebook, a script or a setting holds it."""
    users = project.files_using(name.decode(), most=MANY_FILES)
    quoted = re.compile(rb"""["'.:]""" + re.escape(name) + rb"""["']""")
    if users is None or any(quoted.search(project.read(path) or b"") for path in users):
        return True
    return is_in_settings(project, name)


def is_in_settings(project: Project, name: bytes) -> bool:
    """True where a notebook, a shell script or a setting holds the name."""
    return any(uses(project.read_text(p) or b"", name) for p in project.files_containing(name, kinds=ELSEWHERE))
