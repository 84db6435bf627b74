"""DDP105: a number at the end of an epoch that is worked out from what one rank collected."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.logged.epoch_numbers import Shown, is_kept_to_one_device, shown_numbers
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class RankLocalEpochMean(DdpCodemod):
    """A number at the end of an epoch that is worked out from what one rank collected.

    ## What it does
    Finds hooks at the end of an epoch, of a LightningModule or a Callback, that average what the steps collected in a list (or
    the `outputs` that older versions hand in) and print it, give it to the logger or return it to be logged, without a gather.
    It reports the place and the gather to write.

    ## Why it matters
    Each rank's steps see that rank's share of the data only. What rank 0 prints is the score of its own share, which looks like
    that of all data; with other numbers of processes the same model gets other scores.

    ## Example
    ```python
    import lightning.pytorch as pl
    import torch


    class Model(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            self.errors.append(self.error(batch))

        def on_validation_epoch_end(self):
            self.print(f"error: {torch.stack(self.errors).mean():.4f}")
            self.errors.clear()
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    import torch


    class Model(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            self.errors.append(self.error(batch))

        def on_validation_epoch_end(self):
            self.print(f"error: {self.all_gather(torch.stack(self.errors)).mean():.4f}")
            self.errors.clear()
    ```

    ## Safety
    There is no fix: a gather waits for all ranks, and needs as many entries on each of them.

    ## Refuses
    - What a `self.log` call logs at the end of an epoch: DDP101 judges it, and adds `sync_dist=True` to a mean.
    - Lists whose entries are gathered in the steps, numbers that are gathered or reduced, `compute()` of a metric.
    - Lists that are shown as they are, and their lengths: a sample or a count of one rank may be meant.
    - Lists of times and of memory, which each process measures of itself: none of them is a share of the data.
    - Lines that name the rank, a number made in a helper that other code may call, projects whose every Trainer has one device.
    - What a hook returns under "log", unless a Lightning below 1.0 is pinned: later ones leave it unread.
    - A repository's own tests.

    ## References
    Two-process runs on Lightning 2.6.6: the printed mean is that of rank 0's share, `self.all_gather` gives that of all.
    """

    code = "DDP105"
    severity = "data"
    TRIGGERS = ((b"_epoch_end(", b"on_validation_end(", b"on_test_end("), (b"append(", b" += ", b"outputs", b"extend("))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or is_kept_to_one_device(project):
            return
        for shown in shown_numbers(project, module):
            statement = module.statement_of(shown.node)
            if "rank" in module.text_of(statement).lower():
                continue
            text = " ".join(module.text_of(shown.node).split())
            yield self.finding(
                module,
                shown.node,
                f"`{text}` is {shown.how} as if it were of all data, but {shown.source}: it is the number of one rank's share",
                reason=_advice(module, shown),
            )


def _advice(module: SourceModule, shown: Shown) -> str:
    if shown.joined is None:
        return "gather what was collected with all_gather on every rank, or keep it in a torchmetrics object, which is reduced"
    text = " ".join(module.text_of(shown.joined).split())
    function = module.function_of(shown.node)
    holder = "pl_module" if function is not None and any(a.arg == "pl_module" for a in function.args.args) else "self"
    return f"write `{holder}.all_gather({text})` there, above any test of the rank, if every rank collects as many entries"
