"""DDP103: sync_dist on a torchmetrics object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, role_of_method
from codemods.analysis.log_calls import logged_value
from codemods.analysis.metric_attributes import metric_attribute
from codemods.codemod import DdpCodemod
from codemods.findings import Applicability, DropKeyword, Evidence, Finding
from codemods.project import Project
from codemods.source import SourceModule


class SyncedMetricObject(DdpCodemod):
    """`sync_dist=True` on a torchmetrics object does nothing.

    ## What it does
    Finds `self.log(name, self.metric, sync_dist=True)` where `self.metric` is a torchmetrics object and drops the argument.

    ## Why it matters
    Lightning ignores `sync_dist` for a metric object: the metric reduces its own state over the ranks when it is computed.
    The argument suggests that without it the value would be local, and people then add it, or take it out, in the wrong place.

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
            self.val_acc(self(x), y)
            self.log("val/acc", self.val_acc, prog_bar=True, sync_dist=True)
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
    Safe: the argument is ignored for metric objects in every version of Lightning that has both, so nothing changes at run
    time, on one device or on many.

    ## Refuses
    Says nothing where the attribute is not shown to be a torchmetrics object in the class or one of its project bases, or
    where the logged value is the result of a call.

    ## References
    Lightning 2.6.6 `trainer/connectors/logger_connector/result.py`; two-process run with and without the argument.
    """

    code = "DDP103"
    TRIGGERS = ((b"sync_dist",), (b".log(", b".log_dict("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log", "log_dict"):
            keyword = next((k for k in call.keywords if k.arg == "sync_dist"), None)
            if keyword is None or not isinstance(keyword.value, ast.Constant) or keyword.value.value is not True:
                continue
            place = role_of_method(project, module, call)
            value = logged_value(call)
            if place is None or value is None or not place[0].is_a(Role.LIGHTNING_MODULE):
                continue
            made = metric_attribute(project, place[0], value)
            if made is None:
                continue
            yield self.finding(
                module,
                call,
                f"sync_dist=True does nothing here: {module.text_of(value)} is a torchmetrics object, which reduces its own "
                "state over the ranks",
                level=Applicability.SAFE,
                edits=[DropKeyword(module.path, module.span(call), "sync_dist")],
                evidence=[Evidence("static", f"{made.text} makes it", made.path, made.line)],
            )
