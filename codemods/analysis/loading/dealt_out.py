"""The data sets whose samples a DistributedSampler deals out to the ranks by their indices."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.loading.passes import training_passes
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, loader_of, samplers_of
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule


def dealt_out(project: Project, module: SourceModule) -> Iterator[tuple[ClassSite, Loader]]:
    """The data sets of this file behind a DistributedSampler that a training goes through."""
    seen: set[int] = set()
    for deal in deals(project, module.path):
        if deal.site.module is module and id(deal.site.node) not in seen:
            seen.add(id(deal.site.node))
            yield deal.site, deal.loader


@record
class Deal:
    """made: the call that makes the data set, an object of the class `site`; `loader` deals its indices out."""

    site: ClassSite
    loader: Loader
    made: Origin


def deals(project: Project, path: str) -> tuple[Deal, ...]:
    """The data sets behind a DistributedSampler in the programs of a file, where a training goes through them."""
    return project.memo(("deals", path), lambda: tuple(_deals(project, path)))


def _deals(project: Project, path: str) -> Iterator[Deal]:
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
