"""DDP101 in programs that only their settings make several processes: told beside a number that Lightning reduces."""

from __future__ import annotations

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import findings_of

NET = """\
import pytorch_lightning as pl
import torch


class Net(pl.LightningModule):
    def validation_epoch_end(self, outputs):
        loss = torch.stack([x["loss"] for x in outputs]).mean()
        self.log("val_loss", loss, sync_dist=self.spread)
        names, overlap = self.overlap_of(outputs)
        self.log("overlap", overlap)

    def overlap_of(self, outputs):
        found = self.scorer(outputs)
        return list(found), sum(found.values()) / 3

    def test_epoch_end(self, outputs):
        loss = torch.stack([x["loss"] for x in outputs]).mean()
        self.log("test_loss", loss, sync_dist=self.spread)
"""
TRAIN = """\
import argparse

import pytorch_lightning as pl

from net import Net

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--accelerator", default=None)
    parser.add_argument("--gpus", type=int, default=0)
    args = parser.parse_args()
    trainer = pl.Trainer(gpus=args.gpus, accelerator=args.accelerator)
    trainer.fit(Net(), loader(args))
"""
BESIDE = "sync_dist=self.spread)\n        names"


def told(net: str) -> list[str]:
    return [f.message for f in findings_of(UnsyncedMetric, net, {"train.py": TRAIN}, path="net.py")]


def test_a_number_beside_one_that_is_reduced() -> None:
    assert len(found := told(NET)) == 1 and "'overlap' is logged" in found[0]
    assert len(told(NET.replace(BESIDE, "sync_dist=True if self.spread else False)\n        names"))) == 1


def test_a_number_alone_and_beside_one_that_is_declined() -> None:
    assert told(NET.replace(BESIDE, "sync_dist=False)\n        names")) == []
    alone = NET.replace('        self.log("val_loss", loss, sync_dist=self.spread)\n', "")
    assert told(alone) == []  # another hook's says nothing of this one
