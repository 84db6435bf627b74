"""LightningModules written by their methods, and what DDP101 is expected to make of them."""

from __future__ import annotations

import textwrap

from codemods.api.findings import Applicability, Finding
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_told, check_transformed, findings_of

HEAD = """\
import contextlib
import lightning.pytorch as pl
import numpy as np
import torch
import torch.nn.functional as F
import torchmetrics


class Model(pl.LightningModule):
"""


def module(body: str) -> str:
    """A LightningModule with these methods."""
    return HEAD + textwrap.indent(textwrap.dedent(body), "    ")


def step(*lines: str, hook: str = "validation_step(self, batch, batch_idx)", more: str = "") -> str:
    """A LightningModule with one hook, whose first lines make a loss; `more` holds other methods."""
    body = "".join(f"    {line}\n" for line in lines)
    return module(f"def {hook}:\n    x, y = batch\n    loss = F.cross_entropy(self(x), y)\n{body}{textwrap.dedent(more)}")


METRICS = """\
    def __init__(self, weight):
        super().__init__()
        metrics = torchmetrics.MetricCollection([torchmetrics.MeanSquaredError()])
        self.val_metrics = metrics.clone(prefix="val/")
        self.acc = torchmetrics.Accuracy(task="binary")
        self.by_name = torch.nn.ModuleDict({"a": torchmetrics.MeanMetric()})
        self.weight = weight
"""


def fixed(*lines: str, **kwargs: str) -> None:
    """The last line's call gets sync_dist=True, safely."""
    before = step(*lines, **kwargs)
    old = lines[-1]
    new = old.rstrip(")") + ")" * (_closing(old) - 1) + ", sync_dist=True)"
    check_transformed(UnsyncedMetric, before, before.replace(old, new))


def _closing(line: str) -> int:
    return len(line) - len(line.rstrip(")"))


def told(*lines: str, reason: str, **kwargs: str) -> Finding:
    return check_told(UnsyncedMetric, step(*lines, **kwargs), reason=reason)


def offered(source: str, reason: str, files: dict[str, str] | None = None) -> Finding:
    """Exactly one finding, unsafe, with this reason."""
    found = findings_of(UnsyncedMetric, source, files)
    assert [f.applicability for f in found] == [Applicability.UNSAFE], [(f.applicability.value, f.reason) for f in found]
    assert reason in found[0].reason, found[0].reason
    return found[0]
