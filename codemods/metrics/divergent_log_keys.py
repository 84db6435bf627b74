"""DDP108: a reduced value that not every rank logs, or logs under the same key."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.logged.divergent_dicts import dictionary_divergence, names_of_batch
from codemods.analysis.logged.divergent_keys import Divergence, divergence
from codemods.analysis.logged.log_calls import LogCall, as_any_log_call, key_nodes, logged_value
from codemods.analysis.metric_attributes import metric_attribute
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.short_texts import shortened
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


class DivergentLogKeys(DdpCodemod):
    """A value that is reduced over the ranks, and that the batch decides whether to log.

    ## What it does
    Finds `self.log` of what is reduced (`sync_dist=True`, or a torchmetrics object) under an `if` on values of the batch, in a
    loop over them, or under a key made of them; of a dictionary that is logged, the helper that makes its keys is read, too, and
    calls through an object that holds the module (`self.model.log`). It reports the place; what to log instead is the author's
    to say.

    ## Why it matters
    Reductions are paired by their position, not by their key. A rank that lacks a key hangs the others at the end of the epoch,
    and ranks that log the same keys in another order get each other's values without any error.

    ## Example
    ```python
    import lightning.pytorch as pl


    class Model(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            images, labels = batch
            error = self.error(images, labels)
            if labels.any():
                self.log("val/positive", error, sync_dist=True)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    from torchmetrics import MeanMetric


    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.positive = MeanMetric()

        def validation_step(self, batch, batch_idx):
            images, labels = batch
            error = self.error(images, labels)
            if labels.any():
                self.positive.update(error)

        def on_validation_epoch_end(self):
            self.log("val/positive", self.positive)
    ```

    ## Safety
    There is no fix: which value a rank without such a batch should count for has to be decided.

    ## Refuses
    - Says nothing in a repository's own tests.
    - Says nothing of values that are not reduced: no other rank waits for them.
    - Says nothing of tests on configuration, counters, shapes, `is None` and keys of a dictionary: every rank has the same.
    - Says nothing of loops over the entries of a dictionary.
    - Says nothing under a rank test, which is DDP301's.

    ## References
    Lightning 2.6.6 on two processes (a should be 10 and b 20, both became 15); Lightning issue #19106; torchmetrics 1.9.
    """

    code = "DDP108"
    severity = "hang"
    TRIGGERS = ((b".log(", b".log_dict("), (b"sync_dist", b"etric"))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("log", "log_dict"):
            log = as_any_log_call(module, project, call)
            if log is None or not (reduced := _reduced(log)) or ranks_at(module, call, project=project).some:
                continue
            found = divergence(module, log.function, call, key_nodes(log), names_of_batch(log)) or dictionary_divergence(log)
            if found is not None:
                yield self.finding(
                    module,
                    call,
                    _message(found, reduced),
                    evidence=[
                        Evidence("static", reduced, module.path, call.lineno),
                        Evidence("static", f"`{shortened(found.text)}` hangs on the batch", module.path, found.line),
                    ],
                    reason="update a metric there and log it for every rank alike at the end of the epoch, under a fixed key",
                )


def _message(found: Divergence, reduced: str) -> str:
    text = shortened(found.text)
    if found.how == "if":
        return f"{reduced}, but only ranks whose batch passes `{text}` log it: the others lack the key, and the epoch's end hangs"
    if found.how == "loop":
        return f"{reduced}, once for each of `{text}` in the batch: ranks with other ones hang, or get each other's values"
    if found.how == "order":
        return f"{reduced}, and the batch decides over the order of the keys (`{text}`): ranks get each other's values"
    return f"{reduced}, under the key {text} that the batch makes: ranks with another key hang, or get each other's values"


def _reduced(log: LogCall) -> str:
    """Why a log waits for the other ranks, "" where it does not."""
    if log.flag("sync_dist") is True:
        return "sync_dist=True reduces this value over the ranks"
    value = logged_value(log.call)
    held = isinstance(value, (ast.Attribute, ast.Subscript)) and metric_attribute(log.project, log.facts, value) is not None
    if log.is_log and held:
        return "a metric is reduced over the ranks when the epoch ends"
    return ""
