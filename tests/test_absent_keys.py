"""A branch that no key of the dict leads to logs nothing."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import findings_of

SOURCE = """
import torch
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        self.losses.append(self(batch).mean())

    def on_validation_epoch_end(self):
        shown = {{}}
        for part in self.parts:
            shown[{first}] = torch.stack(self.losses).mean().item()
        shown["loss"] = torch.stack(self.losses).mean().item()
        if shown:
            for key, value in {walked}:
                if key == "accuracy":
                    self.log(key, value, prog_bar=True)
"""


@pytest.mark.parametrize(
    ("first", "walked", "told"),
    [
        ('f"loss_{part}"', "shown.items()", 0),
        ('"loss_" + part', "shown.items()", 0),
        ('f"acc{part}"', "shown.items()", 1),  # it may be that one
        ("part", "shown.items()", 1),
        ('"accuracy"', "shown.items()", 1),
        ('f"loss_{part}"', "{**shown, **self.more}.items()", 1),
    ],
)
def test_a_key_that_nobody_puts_in(first: str, walked: str, told: int) -> None:
    assert len(findings_of(UnsyncedMetric, SOURCE.format(first=first, walked=walked))) == told
