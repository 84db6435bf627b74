"""DDP102."""

from __future__ import annotations

import pytest

from codemods.metrics.sync_every_step import SyncEveryStep
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = """\
import lightning.pytorch as pl
import torchmetrics


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.acc = torchmetrics.Accuracy(task="binary")

"""
STEP = "    def training_step(self, batch, batch_idx):\n        loss = self(batch).mean()\n"


def model(line: str, *, more: str = "", hook: str = STEP) -> str:
    return HEAD + hook + f"        {line}\n        return loss\n" + more


def test_example_of_the_page() -> None:
    sections = SyncEveryStep.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(SyncEveryStep, before, after, unsafe=True)


@pytest.mark.parametrize("options", ["", ", on_step=True", ", on_step=True, on_epoch=False", ", prog_bar=True"])
def test_a_number_of_each_step(options: str) -> None:
    before, after = (model(f'self.log("loss", loss{options}{sync})') for sync in (", sync_dist=True", ""))
    (found,) = check_transformed(SyncEveryStep, before, after, unsafe=True)
    assert "not the mean of all ranks" in found.reason


def test_the_epoch_needs_a_call_of_its_own() -> None:
    source = model('self.log("loss", loss, on_step=True, on_epoch=True, sync_dist=True)')
    check_told(SyncEveryStep, source, reason="in a call of its own")


@pytest.mark.parametrize(
    "line",
    [
        'self.log("loss", loss)',
        'self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)',
        'self.log("loss", loss, sync_dist=self.several)',
        'self.log("acc", self.acc, sync_dist=True)',
        'self.log("count", loss, reduce_fx="sum", sync_dist=True)',
        'self.log(f"loss/{batch_idx}", loss, sync_dist=True)',
        'self.log("lr", 0.1, sync_dist=True)',
    ],
)
def test_nothing_to_say(line: str) -> None:
    check_nothing(SyncEveryStep, model(line))


LOGS = 'self.log("loss", loss, sync_dist=True)'


@pytest.mark.parametrize(
    "more",
    [
        "\n    def training_step_end(self, out):\n        print(self.trainer.callback_metrics['loss'])\n",
        "\n    def on_train_batch_end(self, *args):\n        self.step_up()\n\n    def log(self, name, value, **more): ...\n",
        '\n\ndef fit(model):\n    pl.Trainer(callbacks=[pl.callbacks.EarlyStopping(monitor="loss")]).fit(model)\n',
    ],
)
def test_numbers_that_somebody_goes_by(more: str) -> None:
    check_nothing(SyncEveryStep, model(LOGS, more=more))


def test_a_helper_of_several_hooks() -> None:
    helper = "    def shared(self, batch):\n        loss = self(batch).mean()\n"
    more = "\n    def training_step(self, batch, batch_idx):\n        return self.shared(batch)\n"
    check_transformed(
        SyncEveryStep,
        model(LOGS, hook=helper, more=more),
        model('self.log("loss", loss)', hook=helper, more=more),
        unsafe=True,
    )
    both = more + "\n    def validation_step(self, batch, batch_idx):\n        self.shared(batch)\n"
    check_nothing(SyncEveryStep, model(LOGS, hook=helper, more=both))
