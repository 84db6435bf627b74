"""DDP104."""

from __future__ import annotations

import pytest

from codemods.metrics.logged_batch_value import LoggedBatchValue
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = """\
import lightning.pytorch as pl
import torchmetrics


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.acc = torchmetrics.Accuracy(task="binary")
        self.f1 = torchmetrics.F1Score(task="binary", dist_sync_on_step=True)

"""
STEP = "    def validation_step(self, batch, batch_idx):\n        x, y = batch\n"


def model(*lines: str, more: str = "", hook: str = STEP) -> str:
    return HEAD + hook + "".join(f"        {line}\n" for line in lines) + more


def test_example_of_the_page() -> None:
    sections = LoggedBatchValue.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(LoggedBatchValue, before, after, unsafe=True)
    check_nothing(UnsyncedMetric, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (('acc = self.acc(self(x), y)', 'self.log("acc", acc)'), ('acc = self.acc(self(x), y)', 'self.log("acc", self.acc)')),
        (('self.log("acc", self.acc(self(x), y))',), ("self.acc(self(x), y)", 'self.log("acc", self.acc)')),
        (
            ('acc = self.acc(self(x), y)', 'self.log(name="acc", value=acc, on_step=True, on_epoch=True)', "return acc"),
            ('acc = self.acc(self(x), y)', 'self.log(name="acc", value=self.acc, on_step=True, on_epoch=True)', "return acc"),
        ),
    ],
)
def test_the_metric_itself_is_logged(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    (found,) = check_transformed(LoggedBatchValue, model(*before), model(*after), unsafe=True)
    assert "where the mean of the batches was shown" in found.reason
    check_nothing(UnsyncedMetric, model(*before))


def test_a_training_metric_of_the_epoch() -> None:
    hook = "    def training_step(self, batch, batch_idx):\n        x, y = batch\n"
    lines = ("acc = self.acc(self(x), y)", 'self.log("acc", acc, on_step=False, on_epoch=True)', "return self.loss(x)")
    after = tuple(line.replace("acc, on", "self.acc, on") for line in lines)
    check_transformed(LoggedBatchValue, model(*lines, hook=hook), model(*after, hook=hook), unsafe=True)
    each_step = ("acc = self.acc(self(x), y)", 'self.log("acc", acc)', "return self.loss(x)")
    check_nothing(LoggedBatchValue, model(*each_step, hook=hook))


def test_what_does_not_stand_in_the_way() -> None:
    more = (
        "\n    def on_train_start(self):\n        self.acc.reset()\n"
        "\n    def on_validation_epoch_end(self):\n        self.best = max(self.best, self.acc.compute())\n"
    )
    lines = ("acc = self.acc(self(x), y)", 'self.log("acc", acc)')
    check_transformed(
        LoggedBatchValue,
        model(*lines, more=more),
        model(*lines, more=more).replace('"acc", acc', '"acc", self.acc'),
        unsafe=True,
    )


VALUE = ("acc = self.acc(self(x), y)", 'self.log("acc", acc)')
TRAINED = "\n    def training_step(self, batch, batch_idx):\n        self.acc(*batch)\n        return batch[0].mean()\n"


@pytest.mark.parametrize(
    ("lines", "more", "reason"),
    [
        (VALUE, "\n    def on_validation_epoch_end(self):\n        self.acc.reset()\n", "empties it"),
        (VALUE, TRAINED, "updates it as well"),
        (VALUE, "\n    def keep(self):\n        return [self.acc]\n", "does something else with it"),
        (("acc = self.acc(self(x), y)", 'self.log("acc", acc, reduce_fx="max")'), "", "reduce_fx does nothing"),
        (("acc = self.acc(self(x), y)", "if y.sum() > 0:", '    self.log("acc", acc)'), "", "it stands behind"),
        (("acc = self.acc(self(x), y)", "for name in batch:", '    self.log(name, acc)'), "", "it stands behind"),
        (("self.acc.update(x, y)", *VALUE), "", "updates it as well"),
    ],
)
def test_refusals(lines: tuple[str, ...], more: str, reason: str) -> None:
    check_told(LoggedBatchValue, model(*lines, more=more), reason=reason)


def test_a_helper_that_training_and_evaluation_share() -> None:
    helper = "    def shared(self, batch, stage):\n        x, y = batch\n"
    more = (
        "\n    def training_step(self, batch, batch_idx):\n        self.shared(batch, 'train')\n        return batch[0].mean()\n"
        "\n    def validation_step(self, batch, batch_idx):\n        self.shared(batch, 'val')\n"
    )
    source = model("acc = self.acc(self(x), y)", 'self.log(f"{stage}/acc", acc, on_epoch=True)', hook=helper, more=more)
    check_told(LoggedBatchValue, source, reason="training and evaluation share it")


def test_several_loaders() -> None:
    hook = "    def validation_step(self, batch, batch_idx, dataloader_idx=0):\n        x, y = batch\n"
    check_told(LoggedBatchValue, model(*VALUE, hook=hook), reason="each needs a metric of its own")


def test_a_callback_that_empties_it() -> None:
    callback = (
        "import lightning.pytorch as pl\n\n\nclass Clear(pl.Callback):\n"
        "    def on_validation_epoch_end(self, trainer, pl_module):\n        pl_module.acc.reset()\n"
    )
    check_told(LoggedBatchValue, model(*VALUE), reason="line 6 of clear.py empties it", files={"clear.py": callback})


@pytest.mark.parametrize(
    "lines",
    [
        ('self.acc(self(x), y)', 'self.log("acc", self.acc)'),
        ('self.log("acc", self.acc.compute())',),
        ('self.log("f1", self.f1(self(x), y))',),
        ("acc = self.acc(self(x), y)", 'self.log("acc", acc, sync_dist=True)'),
        ("acc = self.acc(self(x), y)", 'self.log("acc", acc, on_step=True, on_epoch=False)'),
        ('self.log("loss", self(x).mean())',),
    ],
)
def test_nothing_to_say(lines: tuple[str, ...]) -> None:
    check_nothing(LoggedBatchValue, model(*lines))


OWN_LOG = """\
import lightning.pytorch as pl

OPTIONS = {{"train": dict(sync_dist={0}), "valid": dict(sync_dist={0})}}


class Base(pl.LightningModule):
    def log(self, name, value, kwargs=None):
        for key, one in {{name: value}}.items():
            super().log(key, one, **(kwargs or OPTIONS[self.stage]))
"""


def test_a_log_of_its_own_that_reduces() -> None:
    source = HEAD.replace("import lightning.pytorch as pl", "from base import Base").replace("pl.LightningModule", "Base")
    source += STEP + "        acc = self.acc(self(x), y)\n        self.log('acc', acc)\n"
    check_nothing(LoggedBatchValue, source, files={"base.py": OWN_LOG.format("True")})
    check_told(LoggedBatchValue, source, reason="the class has its own log", files={"base.py": OWN_LOG.format("False")})
    mean = source.replace("acc = self.acc(self(x), y)", "acc = (self(x) - y).mean()")
    check_nothing(UnsyncedMetric, mean, files={"base.py": OWN_LOG.format("True")})
