"""The data sets whose loaders an Accelerator prepares: each rank then takes every n-th batch of the order that it has itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import Origin, made_facts, origins
from codemods.analysis.loading.samplers import Loader, loader_of
from codemods.analysis.names import last
from codemods.files.source import SourceModule
from codemods.store.project import Project

_PREPARES = ("prepare", "prepare_data_loader")


def prepared_data(project: Project, module: SourceModule) -> list[ast.expr]:
    """What the prepared loaders that this file makes go through."""
    return [loader.dataset for loader in prepared(project) if loader.module is module and loader.dataset is not None]


def prepared(project: Project) -> tuple[Loader, ...]:
    """The prepared loaders whose batches are shared out by their numbers.

    None where the project speaks of `dispatch_batches`: rank 0 may read the batches of all ranks then.
    """
    return project.memo("prepared loaders", lambda: tuple(_found(project)))


def _found(project: Project) -> Iterator[Loader]:
    if project.files_containing(b"dispatch_batches") or not project.files_containing(b"ccelerat"):
        return
    for path in sorted(p for p in project.files_containing(b".prepare") if not is_test_file(p)):
        module = project.module(path)
        for call in module.calls_named(*_PREPARES) if module is not None else ():
            if module is not None and isinstance(call.func, ast.Attribute) and is_accelerator(project, module, call.func.value):
                yield from _of_call(project, module, call)


def _of_call(project: Project, module: SourceModule, call: ast.Call) -> Iterator[Loader]:
    for given in call.args:
        made = origins(project, module, given) if not isinstance(given, ast.Starred) else ()
        loaders = (found for o in made if (found := loader_of(o)) is not None)
        yield from (loader for loader in loaders if _is_dealt_by_index(project, loader))


def _is_dealt_by_index(project: Project, loader: Loader) -> bool:
    """True for a loader without a sampler of its own, whose data are not a stream: rank 0 reads a stream for all ranks."""
    if loader.hides or loader.sampler is not None or loader.batch_sampler is not None or loader.dataset is None:
        return False
    return not any(_is_stream(project, o) for o in origins(project, loader.module, loader.dataset))


def _is_stream(project: Project, made: Origin) -> bool:
    facts = made_facts(project, made)
    return facts is not None and any(last(name) == "IterableDataset" for name in facts.external)
