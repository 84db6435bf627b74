"""DDP101: what a method of a torchmetrics object makes of its states, outside of `compute`."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, check_told, findings_of

SCORES = """\
import torch
import torchmetrics
from torchmetrics.classification import MulticlassConfusionMatrix


class Counts(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("right", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("seen", torch.tensor(0), dist_reduce_fx="sum")
        self.scale = 100

    def update(self, preds, y):
        self.right += (preds == y).sum()
        self.seen += y.numel()

    def compute(self):
        return self.right / self.seen

    def percent(self):
        return self.scale * self._share()

    def _share(self):
        return self.right / self.seen

    def whole(self):
        return self.compute() * self.scale

    def size(self):
        return self.scale


class Table(MulticlassConfusionMatrix):
    def update(self, preds, y):
        self.confmat += torch.bincount(preds * self.num_classes + y).view(self.num_classes, -1)

    def percent(self):
        return self.confmat.diag().sum() / self.confmat.sum()


class Joined(Counts):
    def percent(self):
        return torch.distributed.all_gather_into_tensor(self.right)
"""
MODEL = """\
import lightning.pytorch as pl
import torch
from scores import Counts, Joined, Table


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.score = Counts()
        self.mean = Counts()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        preds = self(x).argmax(1)
        self.score(preds, y)

    def on_validation_epoch_end(self):
        mean = self.mean.compute()
        percent = self.score.percent()
        self.log("val/percent", percent)
        self.score.reset()
"""
FILES = {"scores.py": SCORES}
READ = "`self.right` in scores.py"


def test_a_state_that_is_read_outside_of_compute() -> None:
    found = check_told(UnsyncedMetric, MODEL, files=FILES, reason=READ)
    assert "gather it over the ranks" in found.reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("self.score = Counts()", "self.score = Table(num_classes=3)", "`self.confmat` in scores.py"),
        ('"val/percent", percent', '"val/percent", self.score.percent()', READ),
        ("self.score(preds, y)", "self.score.update(preds, y)", READ),
        ("on_validation_epoch_end", "on_train_epoch_end", READ),
        ("self.score.reset()", 'self.log("val/score", self.score)', READ),
    ],
)
def test_a_state_in_other_spellings(old: str, new: str, reason: str) -> None:
    assert old in MODEL
    check_told(UnsyncedMetric, MODEL.replace(old, new), files=FILES, reason=reason)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.score.percent()", "self.score.whole()"),  # computes, which waits for all ranks
        ("self.score.percent()", "self.score.size()"),  # reads no state
        ("self.score = Counts()", "self.score = Joined()"),  # sees to the other ranks itself
        ("self.score(preds, y)", "self.score(self.all_gather(preds), self.all_gather(y))"),
        ("self.score(preds, y)", "preds = self.all_gather(preds)\n        self.score(preds, self.all_gather(y))"),
        ("self.score.reset()", "self.score.right = self.all_gather(self.score.right).sum()"),
        ("        percent =", "        self.score.sync()\n        percent ="),
        ("        percent =", "        share_states(self.score)\n        percent ="),
        ("        percent =", "        for each in (self.score, self.mean):\n            each.sync()\n        percent ="),
    ],
)
def test_a_state_that_may_be_that_of_all_ranks(old: str, new: str) -> None:
    assert old in MODEL
    check_nothing(UnsyncedMetric, MODEL.replace(old, new), files=FILES)


def test_a_state_in_the_middle_of_an_epoch_is_not_judged_so() -> None:
    step = "        self.score(preds, y)\n"
    source = MODEL.replace(step, step + '        self.log("s", self.score.percent())\n')
    told = [f for f in findings_of(UnsyncedMetric, source, FILES) if READ in f.reason]
    assert [f.span.line for f in told] == [source[: source.index('self.log("val/percent"')].count("\n") + 1]
