"""DDP101: checkpoints named by numbers of each rank's own, and asked for as the best one."""

from __future__ import annotations

import pytest

from codemods.api.findings import Finding
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import findings_of

PROGRAM = """\
import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


class Net(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self(x), y)
        {log}
        return loss


def main(data):
    kept = ModelCheckpoint(monitor="val_loss", {name})
    trainer = pl.Trainer(devices=2, strategy="ddp", callbacks=[kept])
    net = Net()
    trainer.fit(net, data)
    {end}
"""
LOG, NAME, END = 'self.log("val_loss", loss)', 'filename="{epoch}-{val_loss:.3f}"', 'trainer.test(net, data, ckpt_path="best")'


def told(log: str = LOG, name: str = NAME, end: str = END) -> list[Finding]:
    text = PROGRAM.replace("{log}", log).replace("{name}", name).replace("{end}", end)
    return [f for f in findings_of(UnsyncedMetric, text) if "into the name" in f.message]


@pytest.mark.parametrize(
    ("log", "name", "end"),
    [
        (LOG, NAME, END),
        (LOG, 'filename="best-{val_loss}"', END),
        (LOG, 'filename=f"{data.name}-{{val_loss:.2f}}"', END),
        (LOG, NAME, 'trainer.validate(net, data, ckpt_path="best")'),
        ('self.log("val_loss", loss, on_epoch=True, prog_bar=True)', NAME, END),
    ],
)
def test_the_others_look_for_another_file(log: str, name: str, end: str) -> None:
    (found,) = told(log, name, end)
    assert found.severity == "crash"
    assert "FileNotFoundError" in found.message


@pytest.mark.parametrize(
    ("log", "name", "end"),
    [
        ('self.log("val_loss", loss, sync_dist=True)', NAME, END),
        ('self.log("val_loss", self.all_gather(loss).mean())', NAME, END),
        (LOG, 'filename="{epoch}-{step}"', END),
        (LOG, 'filename="best"', END),
        (LOG, NAME, 'trainer.test(net, data, ckpt_path="last")'),
        (LOG, NAME, "trainer.test(net, data)"),
        (LOG, 'filename="{epoch}-{train_loss:.3f}"', END),  # nobody is seen to log it
    ],
)
def test_names_that_all_ranks_have(log: str, name: str, end: str) -> None:
    assert told(log, name, end) == []


def test_one_device() -> None:
    text = PROGRAM.replace("{log}", LOG).replace("{name}", NAME).replace("{end}", END)
    text = text.replace('devices=2, strategy="ddp"', "devices=1")
    assert not [f for f in findings_of(UnsyncedMetric, text) if "into the name" in f.message]
