"""Do all programs of the project that test run on one process? Then what is logged in the hooks of a test is whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.files.every_rank import is_of_one
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project


def tests_alone(project: Project) -> bool:
    """True where each `trainer.test(...)` outside the repository's own tests is one of a Trainer of one device on one node.

    Also where only those tests make such a call.
    """
    return project.keep("tests alone", lambda: _find(project))


def _find(project: Project) -> bool:
    trainers = [list(_trainers(project, module, call)) for module, call in _calls(project)]
    if not trainers and _only_own_tests_test(project):
        return True
    return bool(trainers) and all(made and all(is_of_one(t) for t in made) for made in trainers)


def _only_own_tests_test(project: Project) -> bool:
    """True where nothing but the repository's own tests calls `trainer.test`, and no command line of Lightning does."""
    paths = project.files_calling("test")
    if any(not is_test_file(p) for p in paths) or project.files_containing(b"LightningCLI"):
        return False
    return any(is_test_file(p) for p in paths)


def _calls(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    for path in project.files_calling("test"):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named("test") if module is not None else ():
            if module is not None and isinstance(call.func, ast.Attribute) and "trainer" in dotted(call.func.value).lower():
                yield module, call


def _trainers(project: Project, module: SourceModule, call: ast.Call) -> Iterator[ast.Call]:
    """The calls that make the Trainer, in the function itself or in one that gives it."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call
    for value in assigned(module, receiver, dotted(receiver)):
        if not isinstance(value, ast.Call):
            continue
        if last(qualified(module, value.func)) == "Trainer":
            yield value
        elif (site := called_function(project, module, value)) is not None:
            given = returned(site.node, site.module)
            yield from (v for v in given if isinstance(v, ast.Call) and last(qualified(site.module, v.func)) == "Trainer")
