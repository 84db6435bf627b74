"""DDP103: sync_dist on a torchmetrics object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.callers import family_of
from codemods.analysis.logged.log_calls import LogCall, as_log_call, literal_mapping, logged_value
from codemods.analysis.logged.log_twins import Same, twins
from codemods.analysis.metric_attributes import Made, metric_attribute
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project


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
    time.

    ## Refuses
    - an attribute that is not shown to be a torchmetrics object by every value the class and its project bases give it
    - what a call returned: `self.acc(preds, y)` is a number, and `sync_dist` counts for it
    - a dictionary in which not every entry is a torchmetrics object
    - an argument that is not the literal True: somebody decides elsewhere
    - a key that the same hook also logs with another `sync_dist`: Lightning refuses two calls with different options
    - a class, or a project subclass of it, with a `log` of its own
    - a metric made with `sync_on_compute`: it may not reduce itself

    ## References
    Lightning 2.6.6 `trainer/connectors/logger_connector/result.py`; two-process run with and without the argument.
    """

    code = "DDP103"
    severity = "noise"
    subject = "Drop sync_dist where a metric object reduces itself"
    must_show = "The logged value is the same before and after, on one process and on two."
    printed = ()
    TRIGGERS = ((b"sync_dist",), (b".log(", b".log_dict("))

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log", "log_dict"):
            log = as_log_call(module, project, call) if _asks(call) else None
            made = _metrics_of(log) if log is not None else []
            if log is None or not made or not log.on_self or _is_elsewhere_decided(log):
                continue
            value = logged_value(call)
            named = module.text_of(value) if value is not None and len(made) == 1 else "each of these values"
            yield self.finding(
                module,
                call,
                f"sync_dist=True does nothing here: {named} is a torchmetrics object, which reduces its own state over the ranks",
                level=Applicability.SAFE,
                edits=[DropKeyword(module.path, module.span(call), "sync_dist")],
                evidence=[Evidence("static", f"{m.text} makes it", m.path, m.line) for m in made],
            )


def _asks(call: ast.Call) -> bool:
    """True for a call with a literal sync_dist=True."""
    keyword = next((k for k in call.keywords if k.arg == "sync_dist"), None)
    return keyword is not None and isinstance(keyword.value, ast.Constant) and keyword.value.value is True


def _metrics_of(log: LogCall) -> list[Made]:
    """What makes the logged values torchmetrics objects; empty where one of them is not shown to be one."""
    value = logged_value(log.call)
    mapping = None if log.is_log else literal_mapping(log)
    nodes = list(mapping.values) if mapping is not None else [value] if value is not None else []
    found = [metric_attribute(log.project, log.facts, node) for node in nodes]
    made = [m for m in found if m is not None and b"sync_on_compute" not in (log.project.read(m.path) or b"")]
    return made if len(made) == len(nodes) else []


def _is_elsewhere_decided(log: LogCall) -> bool:
    """True where a log of the class itself reads the argument, or the same key is logged with another one."""
    if any(name in site.methods() for site in family_of(log.project, log.facts) for name in ("log", "log_dict")):
        return True
    return any(map(_is_decided_otherwise, twins(log)))


def _is_decided_otherwise(same: Same) -> bool:
    return same.once("sync_dist otherwise", lambda: _has_other_sync_dist(same))


def _has_other_sync_dist(same: Same) -> bool:
    return any(not _asks(call) and any(k.arg == "sync_dist" for k in call.keywords) for call in same.logs)
