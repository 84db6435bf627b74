"""DDP104: a torchmetrics object that is logged by what it returned for one batch."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.logged.log_calls import LogCall, as_log_call, key_text, values
from codemods.analysis.logged.logged_objects import forward_of, object_edits, why_not_object
from codemods.analysis.logged.sync_judgement import judge_as_object, watched_key
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_UNDER_A_NAME = tuple(b"= self.log" + end for end in (b"\n", b"\r", b" "))


class LoggedBatchValue(DdpCodemod):
    """A metric of an epoch is logged by the numbers that it returned for the batches of each rank.

    ## What it does
    Finds `self.log(key, self.acc(preds, y))` in a LightningModule, where `self.acc` is a torchmetrics object and the key is one
    of the epoch, and logs the object: `self.log(key, self.acc)`. The call that updates the metric stays.

    ## Why it matters
    What a metric returns when it is called is the value of that batch on this rank. Lightning takes the mean of these, and of
    rank 0's alone: each rank's ModelCheckpoint or EarlyStopping decides by its own. With the object, Lightning asks the metric at
    the end of the epoch, and it puts the counts of all ranks together. A mean of batch values is not the metric in any case: of
    batches of different sizes for an accuracy, of any for F1, AUROC or a correlation.

    ## Example
    ```python
    import lightning.pytorch as pl
    import torchmetrics


    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=10)

        def validation_step(self, batch, batch_idx):
            x, y = batch
            self.log("val/acc", self.val_acc(self(x), y), prog_bar=True)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    import torchmetrics


    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=10)

        def validation_step(self, batch, batch_idx):
            x, y = batch
            self.val_acc(self(x), y)
            self.log("val/acc", self.val_acc, prog_bar=True)
    ```

    ## Safety
    Never safe: the number changes on one device, too, to that of all samples. Unsafe where every rank is shown to reach the call
    with the same key, as for DDP101, and the metric is updated in one step and emptied by nobody else.

    ## Refuses
    - a call under an `if` on data, in a loop, a `try` or below an early return: at the end of the epoch ranks would wait
    - a metric that training and evaluation share: their samples would mix
    - a metric that a second call updates, that is emptied by hand (but in a hook of a start), handed on or kept elsewhere
    - a step with `dataloader_idx`
    - `reduce_fx`, `sync_dist` or `rank_zero_only` in the call (the last two: nothing is said)
    - a value that is worked on before it is logged, a dictionary of values: DDP101 says what there is to say
    - a metric made with `dist_sync_on_step=True`, whose batch value is that of all ranks: nothing is said

    ## References
    Lightning 2.6.6 `trainer/connectors/logger_connector/result.py`; torchmetrics 1.9 `Metric.forward`; a two-process run.
    """

    code = "DDP104"
    severity = "data"
    subject = "Log the metric instead of its value for a batch"
    must_show = "The value of the epoch is that of the whole set: the same on one process and on two, whatever the batches hold."
    printed = ()
    TRIGGERS = ((b".log(", *_UNDER_A_NAME), (b"ightning", b"_step"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log"):
            log = as_log_call(module, project, call)
            verdict = judge_as_object(log) if log is not None and log.on_self else None
            if log is None or verdict is None:
                continue
            forward = forward_of(log)
            why = why_not_object(log, forward) if forward is not None else "log the object that returned the value"
            if why:
                verdict.lower(Applicability.DISPLAY, f"{_advice(log)}: {why}")
            else:
                changed = "the number becomes that of all samples of all ranks, on one device, too"
                verdict.lower(Applicability.UNSAFE, f"{changed}, where the mean of the batches was shown")
            edits = object_edits(log, forward) if forward is not None and not why else []
            shown = f"self.{forward.name}" if forward is not None else "the metric"
            yield self.finding(
                module,
                call,
                f"{key_text(log)!r} is logged as what {shown} returned for the batch: at the end of the epoch the mean of rank "
                f"0's batches is shown{_decides(log)}",
                level=verdict.level,
                edits=edits,
                evidence=[Evidence("static", f"{v.text} makes the metric") for _, v in values(log)],
                reason=verdict.reason,
            )


def _advice(log: LogCall) -> str:
    forward = forward_of(log)
    return f"log {forward.written} itself, which reduces over ranks and batches" if forward is not None else "by hand"


def _decides(log: LogCall) -> str:
    watcher = watched_key(log)
    return f", and {watcher.text} at {watcher.path}:{watcher.line} decides on each rank by that rank's" if watcher else ""
