"""DDP102: a number of a training step that is reduced over the ranks in each step, and that nothing goes by."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import family_of
from codemods.analysis.hooks import TRAINING_EPOCH_HOOKS, TRAINING_HOOKS
from codemods.analysis.logged.log_calls import LogCall, as_log_call, key_node, reached, values
from codemods.analysis.logged.log_twins import twins
from codemods.analysis.logged.sync_judgement import watched_key
from codemods.analysis.logged.value_kinds import Kind
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_READ = (b"callback_metrics", b"logged_metrics", b"progress_bar_metrics")


class SyncEveryStep(DdpCodemod):
    """A number that is logged at each training step is reduced over the ranks each time, though nothing goes by it.

    ## What it does
    Finds `self.log(key, value, sync_dist=True)` of a training step whose key no ModelCheckpoint, EarlyStopping or scheduler
    monitors and nothing reads back from the Trainer, and drops `sync_dist`. Where the same call also logs the epoch's value, it
    is reported.

    ## Why it matters
    Lightning reduces such a value at once, in every step, whatever `log_every_n_steps` is: a barrier and an all-reduce for each
    value. All ranks wait for the slowest one there, before the backward pass has begun. The curve of rank 0's batches shows the
    same course with more noise.

    ## Example
    ```python
    import lightning.pytorch as pl
    import torch.nn.functional as F


    class Model(pl.LightningModule):
        def training_step(self, batch, batch_idx):
            x, y = batch
            loss = F.cross_entropy(self(x), y)
            self.log("train/loss", loss, prog_bar=True, sync_dist=True)
            return loss
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    import torch.nn.functional as F


    class Model(pl.LightningModule):
        def training_step(self, batch, batch_idx):
            x, y = batch
            loss = F.cross_entropy(self(x), y)
            self.log("train/loss", loss, prog_bar=True)
            return loss
    ```

    ## Safety
    Never made unless asked for. Unsafe: the logger shows the number of rank 0's batch from then on, in the place of the mean of
    all ranks. What is trained stays the same.

    ## Refuses
    - a call that logs the epoch's value too (`on_epoch=True`): it needs two calls, and is reported
    - a key that is monitored, read back from `trainer.callback_metrics`, logged a second time or no literal: nothing is said
    - `on_step=False`, metric objects, `reduce_fx` (a sum over the ranks is meant): nothing is said
    - a method that other hooks come to as well, and a class with a `log` of its own: nothing is said

    ## References
    Lightning 2.6.6 `trainer/connectors/logger_connector/result.py`; two-process run: one barrier and one all-reduce a value and
    step.
    """

    code = "DDP102"
    severity = "noise"
    subject = "Leave step values of the training unreduced"
    must_show = (
        "A training step makes no collective for this key any more, and each step takes less time; the curve is that of rank 0."
    )
    printed = ()
    TRIGGERS = ((b"sync_dist",), (b".log(", b"= self.log"))
    READS_TESTS = False
    opt_in = True

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log"):
            log = as_log_call(module, project, call)
            if log is None or log.flag("sync_dist") is not True or not _in_each_step(log) or _is_needed(log):
                continue
            key = key_node(log)
            shown = module.text_of(key) if key is not None else "it"
            message = f"{shown} is reduced over the ranks in every training step: each waits there for the slowest"
            if log.keyword("on_epoch") is not None and log.flag("on_epoch") is not False:
                own = "on_step=False, on_epoch=True, sync_dist=True"
                why = f"log the epoch's value in a call of its own ({own}), under another key"
                yield self.finding(module, call, message, reason=f"{why}, and leave sync_dist out here")
                continue
            yield self.finding(
                module,
                call,
                message,
                level=Applicability.UNSAFE,
                edits=[DropKeyword(module.path, module.span(call), "sync_dist")],
                reason="the logger shows the number of rank 0's batch then, not the mean of all ranks",
            )


def _in_each_step(log: LogCall) -> bool:
    """True for a value that Lightning reduces in every step of the training, and nowhere else."""
    if not log.on_self or (log.keyword("on_step") is not None and log.flag("on_step") is not True):
        return False
    found = reached(log)
    return found is not None and not found.unknown and bool(found.hooks) and found.hooks <= TRAINING_HOOKS - TRAINING_EPOCH_HOOKS


def _is_needed(log: LogCall) -> bool:
    """True where the number of all ranks is used, or may be."""
    key = key_node(log)
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or watched_key(log) is not None:
        return True
    if any(log.keyword(name) is not None for name in ("rank_zero_only", "reduce_fx", "sync_dist_group")):
        return True
    if any(v.kind in (Kind.METRIC_OBJECT, Kind.REDUCED, Kind.EQUAL) for _, v in values(log)):
        return True
    if any(name in site.methods() for site in family_of(log.project, log.facts) for name in ("log", "log_dict")):
        return True
    if any(call is not log.call for same in twins(log) for call in same.logs):
        return True
    word = key.value.encode()
    return any(word in (log.project.read(p) or b"") for read in _READ for p in log.project.files_containing(read))
