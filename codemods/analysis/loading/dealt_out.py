"""The data sets whose samples a DistributedSampler deals out to the ranks by their indices."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.loading.origins import made_class, origins
from codemods.analysis.loading.passes import training_passes
from codemods.analysis.loading.samplers import Loader, is_distributed_sampler, loader_of, samplers_of
from codemods.project import Project
from codemods.source import SourceModule


def dealt_out(project: Project, module: SourceModule) -> Iterator[tuple[ClassSite, Loader]]:
    """The data sets of this file behind a DistributedSampler that a training goes through."""
    seen: set[int] = set()
    for found in training_passes(project, module.path):
        for origin in origins(project, found.module, found.source):
            loader = loader_of(origin)
            if loader is None or loader.dataset is None:
                continue
            if not any(is_distributed_sampler(project, s) for s in samplers_of(project, loader)):
                continue
            for made in origins(project, loader.module, loader.dataset):
                site = made_class(project, made)
                if site is not None and site.module is module and id(site.node) not in seen:
                    seen.add(id(site.node))
                    yield site, loader
