"""Is a file that a script writes read by what the script imports behind that? Each process reads it then, at once.

No test for rank 0 can stand over such a write: the others come to the import before the file is there.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from posixpath import dirname

from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.loading.same_program import whole_program
from codemods.files.source import SourceModule
from codemods.store.project import Project

_READS = (Act.READS, Act.LOADS)


def read_at_import(project: Project, module: SourceModule, at: ast.AST, path: ast.expr) -> tuple[str, int] | None:
    """(file, line) of the first such read, of a path that is written out in both places."""
    if not isinstance(path, ast.Constant) or not isinstance(path.value, str) or module.function_of(at) is not None:
        return None
    line = module.statement_of(at).lineno
    if not any(isinstance(s, (ast.Import, ast.ImportFrom)) and s.lineno > line for s in module.tree.body):
        return None
    return next(_reads(project, module, path.value), None)


def _reads(project: Project, module: SourceModule, path: str) -> Iterator[tuple[str, int]]:
    holding = {p for p in project.files_containing(os.fsencode(path)) if p != module.path and not is_test_file(p)}
    for other in sorted(holding & _imported(project, module)) if holding else ():
        home = project.module(other)
        for call in home.nodes(ast.Call) if home is not None else ():
            found = file_call(home, call) if home is not None and home.function_of(call) is None else None
            if found is not None and found.act in _READS and isinstance(found.path, ast.Constant) and found.path.value == path:
                yield other, call.lineno


def _imported(project: Project, module: SourceModule) -> set[str]:
    """The files that run when the script is imported: of `import net.data` that of the package `net` too."""
    found = set(whole_program(project, module.path))
    packages = {init for path in found for init in _packages(path)} - found
    known = set(project.python_files)
    return found.union(*[whole_program(project, init) for init in packages & known])


def _packages(path: str) -> Iterator[str]:
    folder = dirname(path)
    while folder:
        yield f"{folder}/__init__.py"
        folder = dirname(folder)
