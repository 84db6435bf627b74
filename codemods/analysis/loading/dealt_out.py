"""The data sets whose samples a DistributedSampler deals out to the ranks by their indices."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, role_of_method
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.passes import training_passes
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, loader_of, samplers_of
from codemods.analysis.model.signatures import returned
from codemods.analysis.ranks.one_device import has_trainers_of_one_device
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_OFF = (b"use_distributed_sampler", b"replace_sampler_ddp")


def dealt_out(project: Project, module: SourceModule) -> Iterator[tuple[ClassSite, Loader]]:
    """The data sets of this file behind a DistributedSampler that a training goes through, or an evaluation."""
    seen: set[int] = set()
    for deal in (*deals(project, module.path), *_of_all_loaders(project)):
        if deal.site.module is module and not deal.by_lightning and id(deal.site.node) not in seen:
            seen.add(id(deal.site.node))
            yield deal.site, deal.loader


def all_deals(project: Project) -> tuple[Deal, ...]:
    """Of every loader with a DistributedSampler, and of those that Lightning gives one."""
    return (*_of_all_loaders(project), *_of_lightning(project))


@record
class Deal:
    """made: the call that makes the data set, an object of the class `site`; `loader` deals its indices out.

    by_lightning: the sampler is the one that Lightning puts into the loader.
    """

    site: ClassSite
    loader: Loader
    made: Origin
    by_lightning: bool = False


def deals(project: Project, path: str) -> tuple[Deal, ...]:
    """The data sets behind a DistributedSampler in the programs of a file, where a training goes through them."""
    return project.memo(("deals", path), lambda: tuple(_deals(project, path)))


def _deals(project: Project, path: str) -> Iterator[Deal]:
    yield from _of_lightning(project)
    for found in training_passes(project, path):
        for origin in origins(project, found.module, found.source):
            loader = loader_of(origin)
            if loader is None or loader.dataset is None:
                continue
            if not any(is_distributed_sampler(project, s) for s in samplers_of(project, loader)):
                continue
            for made in origins(project, loader.module, loader.dataset):
                if (site := made_class(project, made)) is not None:
                    yield Deal(site, loader, made)


def _of_all_loaders(project: Project) -> tuple[Deal, ...]:
    """The data sets of every loader that is written with a DistributedSampler, whoever goes through it: an evaluation, say."""
    return project.memo("deals of all loaders", lambda: tuple(_find_of_all_loaders(project)))


def _find_of_all_loaders(project: Project) -> Iterator[Deal]:
    for path in project.files_containing(b"DistributedSampler"):
        module = None if is_test_file(path) else project.module(path)
        for call in module.calls_named("DataLoader") if module is not None else ():
            loader = loader_of(Origin(module, call)) if module is not None else None
            if loader is None or loader.dataset is None or loader.hides:
                continue
            if any(is_distributed_sampler(project, s) for s in samplers_of(project, loader)):
                found = ((made_class(project, o), o) for o in origins(project, loader.module, loader.dataset))
                yield from (Deal(site, loader, made) for site, made in found if site is not None)


def _of_lightning(project: Project) -> tuple[Deal, ...]:
    """The data sets of `train_dataloader`: Lightning puts a DistributedSampler into their loaders, unless it is told not to."""
    return project.memo("deals of Lightning", lambda: tuple(_find_of_lightning(project)))


def _find_of_lightning(project: Project) -> Iterator[Deal]:
    if any(project.files_containing(word) for word in _OFF):
        return
    for path in project.files_containing(b"def train_dataloader"):
        module = None if is_test_file(path) else project.module(path)
        for function in module.functions if module is not None else ():
            found = role_of_method(project, module, function) if module is not None else None
            if module is None or function.name != "train_dataloader" or found is None:
                continue
            if has_trainers_of_one_device(project, module):
                return
            if not found[0].is_a(Role.LIGHTNING_MODULE) and not found[0].is_a(Role.LIGHTNING_DATA_MODULE):
                continue
            for value in returned(function, module):
                loaders = (loader_of(o) for o in origins(project, module, value))
                yield from (d for x in loaders if x is not None for d in _of_plain_loader(project, x))


def _of_plain_loader(project: Project, loader: Loader) -> Iterator[Deal]:
    """Those of a loader without a sampler of its own."""
    if loader.dataset is None or loader.hides or loader.sampler is not None or loader.batch_sampler is not None:
        return
    for made in origins(project, loader.module, loader.dataset):
        if (site := made_class(project, made)) is not None:
            yield Deal(site, loader, made, by_lightning=True)
