"""Which files belong to one program: by what they import, and by scripts that import both."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imports_of
from codemods.analysis.ranks.uses import CallSite, constructions, uses_of
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_DEPTH = 3  # imports of imports
MOST_IMPORTERS = 20
MOST_CALLERS = 8
_STEPS = (b"backward(", b".fit(")


def reached(project: Project, path: str) -> frozenset[str]:
    """The files that a file imports, those that they import, and itself."""
    return project.keep(("reached files", path), lambda: _find_reached(project, path, _DEPTH))


def whole_program(project: Project, path: str) -> frozenset[str]:
    """All files that a file imports, however far away, and itself."""
    return project.keep(("whole program", path), lambda: _find_reached(project, path, len(project.python_files)))


def _find_reached(project: Project, path: str, depth: int) -> frozenset[str]:
    found = {path}
    edge = {path}
    for _ in range(depth):
        edge = {other for near in edge for other in _imported(project, near)} - found
        if not edge:
            break
        found |= edge
    return frozenset(found)


def _imported(project: Project, path: str) -> frozenset[str]:
    return project.keep(("imported by", path), lambda: _find_imported(project, path))


def _find_imported(project: Project, path: str) -> frozenset[str]:
    resolved = (project.resolve(name, path) for name in imports_of(project, path))
    return frozenset(r.path for r in resolved if r is not None)


def same_program(project: Project, one: str, other: str) -> bool:
    """True where one of two files imports the other, or a script imports both."""
    first, second = sorted((one, other))
    return one == other or project.keep(("same program", first, second), lambda: _together(project, first, second))


def is_another_script(project: Project, path: str, own: str) -> bool:
    """True for a file that is run itself, that nobody imports, and that is no part of a program of `own`."""
    run_alone = b"__main__" in (project.read(path) or b"") and not project.files_importing(stem_of(path))
    return run_alone and not same_program(project, own, path)


def _together(project: Project, one: str, other: str) -> bool:
    if other in reached(project, one) or one in reached(project, other):
        return True
    stem = stem_of(one)
    users = [p for p in project.files_importing(stem) if not is_test_file(p)]
    return any({one, other} <= reached(project, path) for path in users[:MOST_IMPORTERS])


def comes_to_training(project: Project, path: str) -> bool:
    """False for a script that uses a model but trains none: neither it, nor what it imports or what imports it, makes a step."""

    def build() -> bool:
        stem = stem_of(path)
        near = {*reached(project, path), *project.files_importing(stem)}
        return any(word in (project.read(p) or b"") for p in near for word in _STEPS)

    return project.keep(("comes to training", path), build)


def callers(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    """The calls of a function from its own file and from others of its program, outside of tests.

    A method is looked for by its name alone: sibling scripts that each have a Trainer would else call each other's.
    """
    calls = uses_of(project, module, function).outside_tests().calls
    near = [s for s in calls if s.module is module] or [s for s in calls if not is_test_file(s.module.path)]
    return tuple(s for s in near[:MOST_CALLERS] if same_program(project, s.module.path, module.path))


def runs_of(project: Project, module: SourceModule, function: FunctionNode) -> tuple[CallSite, ...]:
    """As `callers`; of a constructor the calls that make an object of its class, or of one that derives from it."""
    owner = module.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return callers(project, module, function)
    made = constructions(project, module, owner)
    sites = made.outside_tests().calls if made is not None else ()
    return tuple(s for s in sites[:MOST_CALLERS] if same_program(project, s.module.path, module.path))
