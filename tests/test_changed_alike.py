"""DDP101 of a number that a module changes between its epochs, and whether each rank changes it in the same way."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, findings_of

SOURCE = (
    "import torch\nimport lightning.pytorch as pl\nfrom torchmetrics import Accuracy\n\n\n"
    "class Net(pl.LightningModule):\n    def __init__(self, start, least):\n        super().__init__()\n"
    "        self.save_hyperparameters()\n        self.hits = {metric}\n"
    "        self.register_buffer('margin', torch.tensor(self.hparams.start))\n\n"
    "    def validation_step(self, batch, batch_idx):\n        self.hits.update(self(batch[0]), batch[1])\n{step}\n"
    "    def on_validation_epoch_end(self):\n        {change}\n"
    "        self.log('margin', self.margin, on_step=False, on_epoch=True)\n"
)
METRIC = "Accuracy(task='binary')"
LESS = "self.margin = max(self.margin * 0.8, self.margin * 0 + self.hparams.least)"
BY_METRIC = "if self.hits.compute().item() > 0.9:\n            "


@pytest.mark.parametrize("change", [
    BY_METRIC + LESS,
    BY_METRIC + "self.margin *= 0.8",
    LESS,  # every epoch, on every rank
    "if self.current_epoch > 3 and self.hits.compute() > 0.9:\n            " + LESS,
])  # fmt: skip
def test_a_margin_that_goes_by_a_metric(change: str) -> None:
    check_nothing(UnsyncedMetric, SOURCE.format(metric=METRIC, step="", change=change))


@pytest.mark.parametrize(("metric", "step", "change"), [
    ("Hits()", "", BY_METRIC + LESS),  # it may give each rank its own
    (METRIC, "        self.margin = self.margin * batch[0].mean()\n", BY_METRIC + LESS),  # each step, by the rank's batch
    (METRIC, "", "if self.last_loss > 0.9:\n            " + LESS),  # nothing shows whose loss it is
    (METRIC, "", BY_METRIC + "self.margin = self.margin * self.last_loss"),
    (METRIC, "", "if self.last_loss > 0.9:\n            return\n        " + LESS),
])  # fmt: skip
def test_a_margin_that_each_rank_may_change_for_itself(metric: str, step: str, change: str) -> None:
    found = findings_of(UnsyncedMetric, SOURCE.format(metric=metric, step=step, change=change), path="net.py")
    assert [f.code for f in found] == ["DDP101"]
