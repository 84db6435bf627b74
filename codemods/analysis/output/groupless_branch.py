"""Branches of a program in which nobody starts the process group: `if training: init_process_group(…) … else: test()`.

`not dist.is_initialized() or …` lets every rank through there, though a launcher started several.
"""

from __future__ import annotations

import ast

from codemods.analysis.importing import imported_files
from codemods.analysis.ranks.exit_places import other_branch
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

# What starts the group without saying so.
_HIDDEN = (b"ccelerat", b"ightning", b"Trainer", b"deepspeed", b"Fabric")
_STEPS = 2


def is_without_group(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True where the program starts its group in the other arm of an `if` round the statement alone."""
    if any(module.holds(word) for word in _HIDDEN):
        return False
    if any(_is_of_the_program(project, module, p) for p in project.files_containing(b"init_process_group") if p != module.path):
        return False
    starts = _starts_in(project, module, module.function_of(statement))
    return bool(starts) and all(other_branch(module, module.statement_of(start), statement) for start in starts)


def _is_of_the_program(project: Project, module: SourceModule, path: str) -> bool:
    """True where one of the two files imports the other."""
    other = project.module(path)
    return other is None or path in imported_files(project, module) or module.path in imported_files(project, other)


def _starts_in(project: Project, module: SourceModule, function: ast.AST | None) -> list[ast.Call]:
    """The calls of a function that start the group, themselves or by a function of the file; none where others start it too."""
    todo = [(call, _STEPS) for call in module.calls_named("init_process_group")]
    found: list[ast.Call] = []
    while todo:
        call, steps = todo.pop()
        home = module.function_of(call)
        if home is function:
            found.append(call)
            continue
        used = uses_of(project, module, home).outside_tests() if home is not None and steps else None
        if used is None or used.more or used.handed_on or any(site.module is not module for site in used.calls):
            return []
        todo += [(site.call, steps - 1) for site in used.calls]
    return found
