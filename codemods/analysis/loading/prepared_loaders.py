"""Does an Accelerator prepare a loader at all? What it is told about batches is of no effect otherwise."""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import origins
from codemods.analysis.loading.same_program import same_program
from codemods.analysis.loading.samplers import Loader, loader_of
from codemods.store.project import Project

_SIZE = 1  # the place of batch_size among the arguments of a loader


def prepares_loaders(project: Project, path: str) -> bool:
    """True where a program of the file hands a loader with batches of more than one sample to `accelerator.prepare`."""
    return any(same_program(project, path, other) for other in _preparing(project))


def _preparing(project: Project) -> frozenset[str]:
    def build() -> frozenset[str]:
        paths = (p for p in project.files_containing(b".prepare(") if not is_test_file(p))
        return frozenset(p for p in paths if _prepares(project, p))

    return project.keep("files that prepare loaders", build)


def _prepares(project: Project, path: str) -> bool:
    module = project.module(path)
    if module is None:
        return False
    for call in module.calls_named("prepare"):
        if not isinstance(call.func, ast.Attribute) or not is_accelerator(project, module, call.func.value):
            continue
        for given in call.args:
            made = origins(project, module, given) if not isinstance(given, ast.Starred) else ()
            if any((loader := loader_of(o)) is not None and _has_batches(loader) for o in made):
                return True
    return False


def _has_batches(loader: Loader) -> bool:
    size = loader.argument("batch_size", _SIZE)
    return size is not None and not (isinstance(size, ast.Constant) and size.value == 1)
