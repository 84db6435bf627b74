"""DDP101: numbers that a package's function works out of what one rank has gathered in its steps."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_told, findings_of

MODEL = """\
import torch
import lightning as L
{imports}


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.preds, self.gts = [], []

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.preds.extend(self(x))
        self.gts.extend(y)

    def on_validation_epoch_end(self):
        {end}


def main(data):
    L.Trainer(devices=2, strategy="ddp").fit(Net(), data)
"""
SORTED = """\
from fastscore import f_score


def scores(preds, gts):
    classes = [[] for _ in preds[0]]
    for row in preds:
        for j in range(len(row)):
            classes[j].append(row[j])
    best, mean = f_score(classes, gts)
    return best, mean

"""


@pytest.mark.parametrize(
    ("imports", "end"),
    [
        ("from fastscore import f_score", "self.log('f', f_score(self.preds, self.gts))"),
        ("import fastscore as fs", "self.log('f', fs.f_score(preds=self.preds, gts=self.gts))"),
        ("from fastscore import f_score", "best, mean = f_score(self.preds, self.gts)\n        self.log('f', mean)"),
        (SORTED, "best, mean = scores(self.preds, self.gts)\n        self.log('f', best)"),
    ],
)
def test_the_number_of_a_package(imports: str, end: str) -> None:
    check_told(UnsyncedMetric, MODEL.format(imports=imports, end=end), reason="filled step by step on each rank")


@pytest.mark.parametrize(
    ("imports", "end"),
    [
        ("from fastscore import f_score", "self.log('f', f_score(self.trainer.world_size))"),
        ("from fastscore import gathered_score", "self.log('f', gathered_score(self.preds, self.gts))"),  # it may gather itself
        ("from fastscore.distributed import score", "self.log('f', score(self.preds, self.gts))"),
        ("from .scores import score", "self.log('f', score(self.preds, self.gts))"),  # a file that is not there
        ("from fastscore import f_score", "every, gts = self.all_gather((self.preds, self.gts))\n"
         "        self.log('f', f_score(every, gts))"),
        ("", "self.log('f', self.score(self.preds, self.gts))"),
        ("from fastscore import f_score", "print(f_score(self.preds, self.gts))"),
    ],
)
def test_what_may_be_of_all_ranks(imports: str, end: str) -> None:
    """Nothing says of these that they are of one rank's lists."""
    found = findings_of(UnsyncedMetric, MODEL.format(imports=imports, end=end))
    assert not any("step by step" in f.reason for f in found)
