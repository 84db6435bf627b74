"""Does a program take its process group down? Another program of the repository that does takes down its own."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NAME = "destroy_process_group"


def is_destroyed(project: Project, program: SourceModule) -> bool:
    """True where the script says `destroy_process_group`, or names a function of a file that it imports and that does."""
    naming = [p for p in project.files_containing(_NAME.encode()) if not is_test_file(p)]
    if not naming:
        return False
    if program.path in naming:
        return True
    return project.keep(("destroys its group", program.path), lambda: _in_what_it_imports(project, program, frozenset(naming)))


def _in_what_it_imports(project: Project, program: SourceModule, naming: frozenset[str]) -> bool:
    files = whole_program(project, program.path)
    return any(_comes_to_it(project, files, path) for path in sorted(naming & files))


def _comes_to_it(project: Project, files: frozenset[str], path: str) -> bool:
    """True where a file of the program calls or hands on the function that destroys the group, or where no function holds it."""
    module = project.module(path)
    if module is None:
        return True
    calls = module.calls_named(_NAME)
    holders = [module.function_of(call) for call in calls]
    if not holders or None in holders:
        return True  # handed on (`atexit.register(dist.destroy_process_group)`), or run on import
    return any(h is not None and _is_named(project, files, _asked_by(module, h)) for h in holders)


def _asked_by(module: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """By which name it is called: a constructor and what a `with` or the interpreter calls by that of the class."""
    owner = module.parent(function)
    return owner.name if function.name.startswith("__") and isinstance(owner, ast.ClassDef) else function.name


def _is_named(project: Project, files: frozenset[str], name: str) -> bool:
    """True where the name stands in one of the files elsewhere than in its `def` or `class`, or in an import."""
    users = project.files_using(name, most=len(files), among=files) or ()
    modules = (project.module(path) for path in users)
    return any(module is None or bool(module.reads_of(name)) for module in modules)
