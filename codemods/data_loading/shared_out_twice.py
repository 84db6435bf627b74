"""DDP417: data of which each rank has taken its part, and that are shared out over the ranks once more."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.shared_twice import shared_twice
from codemods.analysis.loading.trainer_samplers import trainer_samplers
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class SharedOutTwice(DdpCodemod):
    """Data of which each rank has its own part already, and that are shared out over the ranks once more.

    ## What it does
    Finds a `DistributedSampler` over data that each rank has picked for itself (`files[rank::world_size]`), a loader with such a
    sampler, or such data, that Accelerate prepares, and data of a rank's own that Lightning or Fabric puts a sampler over. So
    does a sampler with a rank's part that the own `_get_train_sampler` of a Trainer of transformers gives.

    ## Why it matters
    Each rank takes its N-th of its N-th. On eight GPUs one sample in eight is trained on in an epoch, the same ones in each where
    nothing shuffles across the parts. The loss looks well, the epochs are short.

    ## Example
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, DistributedSampler


    def train(model, rows):
        accelerator = Accelerator()
        loader = DataLoader(rows, batch_size=8, sampler=DistributedSampler(rows))
        model, loader = accelerator.prepare(model, loader)
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator
    from torch.utils.data import DataLoader


    def train(model, rows):
        accelerator = Accelerator()
        loader = DataLoader(rows, batch_size=8, shuffle=True)
        model, loader = accelerator.prepare(model, loader)
    ```

    ## Safety
    There is no fix: which of the two is left out decides over what each rank reads, and from where.

    ## Refuses
    - Says nothing of data that the nodes share out first, and a sampler of the processes of one node then.
    - Says nothing where the part of a rank rests on a name alone.
    - Says nothing of a loader of another file whose sampler shares out on some ways only.
    - Says nothing of loaders that are not prepared, and of streams and own samplers under Lightning and Fabric.
    - Says nothing of a Trainer where no pin shows transformers 4.31 or newer, or whose class makes the loader itself, too.
    - Says nothing under Lightning where `use_distributed_sampler` is mentioned anywhere.
    - A repository's own tests.

    ## References
    Accelerate 1.15, `BatchSamplerShard` round the batch sampler whatever its sampler is; a run on two processes. transformers
    5.23, `Trainer._get_dataloader`.
    """

    code = "DDP417"
    severity = "data"
    subject = "Share the data out once"
    must_show = "Two processes see all samples of an epoch between them, and each half of them."
    printed = ()
    TRIGGERS = ((b"DistributedSampler", b"DataLoader", b"_get_train_sampler", b"_get_eval_sampler", b".prepare("),)
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path) or bool(project.files_containing(b".prepare("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in (*shared_twice(project, module), *trainer_samplers(project, module)):
            yield self.finding(
                module,
                found.node,
                f"each rank has its own part of the data already, and {found.how}: of an epoch one sample in as many as there "
                "are processes is seen",
                evidence=[
                    Evidence("static", found.first.text, found.first.path, found.first.line),
                ],
                reason="share the data out once: take the rank out of the data, or leave the loader to this one alone",
            )
