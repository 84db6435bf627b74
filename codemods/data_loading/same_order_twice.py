"""DDP410: one loader that is gone through twice at the same time, in the same order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.origins import Origin, origins
from codemods.analysis.loading.samplers import is_distributed_sampler, loader_of, samplers_of, shuffles
from codemods.analysis.names import dotted
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_REASON = (
    "make a second loader with a sampler of its own seed (`DistributedSampler(data, seed=1)`), and give both samplers the epoch"
)


class SameOrderTwice(DdpCodemod):
    """One loader that is gone through twice at the same time, in the same order.

    ## What it does
    Finds `zip(loader, loader)` where the loader's sampler is a `DistributedSampler` that shuffles.

    ## Why it matters
    Without a sampler, each pass over a shuffled loader draws an order of its own, so that the pairs are random. A
    `DistributedSampler` draws its order from its seed and the epoch: both passes have the same. Each sample is paired with
    itself, and mixing two images (CutMix, MixUp), or distinguishing two samples, does nothing. No error says so.

    ## Example
    ```python
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    def mix(data, train_step):
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
        for one, other in zip(loader, loader):
            train_step(one, other)
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler


    def mix(data, train_step):
        loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
        others = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, seed=1))
        for one, other in zip(loader, others):
            train_step(one, other)
    ```

    ## Safety
    There is no fix: a second loader has workers of its own, and its sampler has to be given the epoch, too.

    ## Refuses
    - Says nothing of a sampler with `shuffle=False`, and of one whose `shuffle` is a setting: pairs in order may be meant.
    - Says nothing of loaders without a `DistributedSampler`, and of two loaders.
    - Says nothing where one of the makers of the loader is not seen.
    - A repository's own tests.

    ## References
    torch 2.13, `DistributedSampler.__iter__`: `g.manual_seed(self.seed + self.epoch)`, against `RandomSampler.__iter__`, which
    takes a new seed each time. A run on two processes: every pair holds one sample twice.
    """

    code = "DDP410"
    severity = "data"
    TRIGGERS = ((b"zip(",), (b"oader",))
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return bool(project.files_containing(b"DistributedSampler("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("zip"):
            names = [dotted(a) for a in call.args]
            twice = next((a for a in call.args if dotted(a) and names.count(dotted(a)) > 1), None)
            sampler = _one_order(project, module, twice) if twice is not None else None
            if twice is not None and sampler is not None:
                text = dotted(twice)
                yield self.finding(
                    module,
                    call,
                    f"both passes over `{text}` come in the same order: its DistributedSampler draws it from seed and epoch, so "
                    "each sample is paired with itself",
                    evidence=[Evidence("static", "the sampler", sampler.module.path, sampler.line)],
                    reason=_REASON,
                )


def _one_order(project: Project, module: SourceModule, loader: ast.expr) -> Origin | None:
    """The DistributedSampler that gives every pass of an epoch the same shuffled order."""
    found: Origin | None = None
    for origin in origins(project, module, loader):
        made = loader_of(origin)
        samplers = samplers_of(project, made) if made is not None else ()
        if not samplers or not all(is_distributed_sampler(project, s) and shuffles(s) for s in samplers):
            return None
        found = samplers[0]
    return found
