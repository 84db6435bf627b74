"""DDP117: a sample that is looked up by the number of its batch, though the ranks share the samples out."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.logged.batch_numbers import lookups
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class SampleByBatchNumber(DdpCodemod):
    """A sample's id or file that is looked up by the number of the batch, though the ranks share the samples out.

    ## What it does
    Finds `self.ids[batch_idx]` in `validation_step`, `test_step` and `predict_step` of a LightningModule, where the list holds
    something of each sample of the set.

    ## Why it matters
    `batch_idx` counts the batches of one rank. With a DistributedSampler, which Lightning puts in, the i-th batch of rank r is
    the sample i * world_size + r. The detections of one image go under the id of another, half of the ids are never used, and the
    score collapses as soon as a second GPU is there.

    ## Example
    ```python
    import lightning.pytorch as pl


    class Detector(pl.LightningModule):
        def __init__(self, net, image_ids):
            super().__init__()
            self.net, self.image_ids = net, image_ids

        def test_step(self, batch, batch_idx):
            image, _ = batch
            return self.image_ids[batch_idx], self.net(image)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl


    class Detector(pl.LightningModule):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def test_step(self, batch, batch_idx):
            image, image_id = batch
            return image_id, self.net(image)
    ```

    ## Safety
    There is no fix: the data set has to give the id with the sample.

    ## Refuses
    - Says nothing in training steps, and of a list that the module fills itself.
    - Says nothing of names that are not those of samples (`ids`, `names`, `files`, `dataset`): there may be one for a batch.
    - Says nothing where every Trainer has one device, where a loader has a sampler of its own, and of streams.
    - A repository's own tests.

    ## References
    `torch.utils.data.DistributedSampler.__iter__`: `indices[rank : total_size : num_replicas]`; a run on two processes.
    """

    code = "DDP117"
    severity = "data"
    subject = "Take ids of samples from the batch"
    must_show = "On two processes every prediction goes under the id of its own sample."
    printed = ()
    TRIGGERS = ((b"ightning",), (b"_step(",), (b"batch", b"idx"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for found in lookups(project, module):
            text = " ".join(module.text_of(found.node).split())
            yield self.finding(
                module,
                found.node,
                f"`{text}` takes the number of a batch on this rank for the place of a sample in the set: with several processes "
                "Lightning shares the samples out, and this is the entry of another one",
                evidence=[
                    Evidence("static", f"`{found.number}` counts the batches of one rank", module.path, found.step.lineno),
                ],
                reason="let the data set give the id or the name with each sample, and take it from the batch",
            )
