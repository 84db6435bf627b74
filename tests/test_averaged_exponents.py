"""DDP116: exponents of each rank's own mean that Lightning averages."""

from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told

MODEL = """\
import math
import torch
import pytorch_lightning as pl


class Words(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self(batch)
        {step}
        return loss

    def {hook}(self, outputs):
        loss = torch.stack(outputs).mean()
        {end}


def main(data):
    pl.Trainer(devices=2, strategy="ddp").fit(Words(), data)
"""


def model(end: str, *, hook: str = "validation_epoch_end", step: str = "pass") -> str:
    return MODEL.format(end=end, hook=hook, step=step)


@pytest.mark.parametrize(
    "end",
    [
        "self.log('perplexity', torch.exp(loss), sync_dist=True)",
        "perplexity = torch.exp(loss)\n        self.log('val/ppl', perplexity, sync_dist=True, on_epoch=True)",
        "self.log('val/ppl', loss.exp(), sync_dist=True)",
        "self.log('val/ppl', math.exp(loss), sync_dist=True)",
        "self.log_dict({'val/loss': loss, 'val/ppl': torch.exp(loss)}, sync_dist=True)",
        "self.log('val/ppl', 2 ** loss, sync_dist=True)",
    ],
)
def test_the_exponent_of_the_own_mean(end: str) -> None:
    check_told(AveragedMetric, model(end), reason="all_gather(loss)")


def test_at_the_end_of_a_test() -> None:
    text = model("self.log('ppl', torch.exp(loss), sync_dist=True)", hook="test_epoch_end")
    check_told(AveragedMetric, text, reason="all_gather")


@pytest.mark.parametrize(
    "end",
    [
        "self.log('perplexity', torch.exp(loss))",  # DDP101's
        "self.log('perplexity', torch.exp(self.all_gather(loss).mean()), sync_dist=True)",
        "self.log('val/loss', loss, sync_dist=True)",
        "self.log('perplexity', torch.exp(self.mean.compute()), sync_dist=True)",
        "self.log('perplexity', torch.exp(self.trainer.callback_metrics['val/loss']), sync_dist=True)",
        "self.log('perplexity', torch.exp(loss), sync_dist=True, reduce_fx='max')",
        "self.log('rate', math.exp(-2), sync_dist=True)",
        "print(torch.exp(loss))",
    ],
)
def test_what_is_right_or_told_elsewhere(end: str) -> None:
    check_nothing(AveragedMetric, model(end))


def test_what_a_step_logs_is_the_batch_s() -> None:
    check_nothing(AveragedMetric, model("pass", step="self.log('ppl', torch.exp(loss), sync_dist=True)"))


def test_one_device() -> None:
    text = model("self.log('ppl', torch.exp(loss), sync_dist=True)").replace("devices=2, strategy=\"ddp\"", "devices=1")
    check_nothing(AveragedMetric, text)
