"""DDP904: the learning rate goes into the log that there is, or onto one line of rank 0; never where it would end the run."""

from __future__ import annotations

import pytest

from codemods.tuning.learning_rate_log import LearningRateLog as Log
from ddpfix.testing import check_nothing, check_told, check_transformed, fix

HEAD = "import lightning.pytorch as pl\nfrom lightning.pytorch.callbacks import ModelCheckpoint\n\n"
WITH = "import lightning.pytorch as pl\nfrom lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint\n\n"
MONITOR = 'LearningRateMonitor(logging_interval="epoch")'
MODEL = """\
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.net(batch).sum()
"""


def train(arguments: str, head: str = HEAD, before: str = "") -> str:
    return f"{head}{before}trainer = pl.Trainer({arguments})\ntrainer.fit(model)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("devices=2, callbacks=[ModelCheckpoint()]", f"devices=2, callbacks=[ModelCheckpoint(), {MONITOR}]"),
        ("devices=2, callbacks=[]", f"devices=2, callbacks=[{MONITOR}]"),
        ("devices=2", f"devices=2, callbacks=[{MONITOR}]"),
        ("callbacks=[a(), b], logger=True", f"callbacks=[a(), b, {MONITOR}], logger=True"),
        ("logger=pl.loggers.CSVLogger('o')", f"logger=pl.loggers.CSVLogger('o'), callbacks=[{MONITOR}]"),
    ],
)
def test_the_monitor_joins_the_callbacks(old: str, new: str) -> None:
    check_transformed(Log, train(old), train(new, WITH))


def test_a_list_over_several_lines_keeps_its_layout_and_comments() -> None:
    old = "\n    devices=2,\n    callbacks=[\n        ModelCheckpoint(),  # the best\n        Own(),  # ours\n    ],\n"
    new = old.replace("        Own(),  # ours\n", f"        Own(),  # ours\n        {MONITOR},\n")
    check_transformed(Log, train(old), train(new, WITH))


def test_a_list_that_has_a_name() -> None:
    before, after = "callbacks = [ModelCheckpoint()]\n", f"callbacks = [ModelCheckpoint(), {MONITOR}]\n"
    more = "callbacks.append(Own())\n"
    check_transformed(Log, train("callbacks=callbacks", HEAD, before + more), train("callbacks=callbacks", WITH, after + more))


@pytest.mark.parametrize("logger", ["False", "None"])
def test_without_a_logger_rank_zero_says_it(logger: str) -> None:
    source = "import lightning.pytorch as pl\n\nfrom model import Model\n\n"
    source += f"trainer = pl.Trainer(devices=2, logger={logger})\ntrainer.fit(Model())\n"
    after = (
        MODEL
        + """
    def on_train_epoch_start(self):
        if self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch}: learning rate {self.trainer.optimizers[0].param_groups[0]['lr']:.3g}")
"""
    )
    made = fix(Log, source, {"model.py": MODEL})
    assert {path: data.decode() for path, data in made.changed.items()} == {"model.py": after}


def test_a_hook_that_stands_takes_the_line() -> None:
    hook = '    def on_train_epoch_start(self):\n        """Grow."""\n        self.grow()\n\n'
    source = MODEL.replace("    def training_step", hook + "    def training_step")
    source += "\n\npl.Trainer(logger=False).fit(Model())\n"
    line = "        if self.trainer.is_global_zero:\n            print("
    line += "f\"epoch {self.current_epoch}: learning rate {self.trainer.optimizers[0].param_groups[0]['lr']:.3g}\")\n"
    check_transformed(Log, source, source.replace("        self.grow()\n", line + "        self.grow()\n"))


def test_the_hook_of_a_base_is_called() -> None:
    source = (
        "import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    def on_train_epoch_start(self):\n"
        "        self.grow()\n\n\nclass Model(Base):\n    def training_step(self, batch, batch_idx):\n        return 0\n\n\n"
        "pl.Trainer(logger=False).fit(Model())\n"
    )
    made = fix(Log, source).changed["module.py"].decode()
    assert "        super().on_train_epoch_start()\n        if self.trainer.is_global_zero:" in made


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("logger=logger", "whether there is a logger is not shown: logger"),
        ("logger=False", "no module of the project trains here"),
        ("callbacks=make_callbacks()", "the callbacks are made elsewhere: make_callbacks()"),
        ("barebones=True", "with which nothing is logged"),
        ("fast_dev_run=quick", "with which nothing is logged"),
        ("**settings", "what stands behind **"),
    ],
)
def test_what_is_told(arguments: str, reason: str) -> None:
    check_told(Log, train(arguments), reason=reason)


@pytest.mark.parametrize(
    "more",
    [
        "from lightning.pytorch.callbacks import LearningRateMonitor\n",
        "def f(self):\n    self.log('lr', self.optimizers().param_groups[0]['lr'])\n\n\n",
        "def f(self):\n    print(f'rate {self.optimizers().param_groups[0]}')\n\n\n",
    ],
)
def test_a_rate_that_is_logged_already(more: str) -> None:
    check_nothing(Log, train("devices=2", HEAD, more))


def test_a_setting_that_is_printed_is_no_log_of_it() -> None:
    check_told(Log, train("**kwargs", HEAD, "print(f'max {settings.learning_rate}')\n"), reason="what stands behind **")


def test_the_trainer_of_somebody_else() -> None:
    check_nothing(Log, "import lightning\nfrom own import Trainer\n\nTrainer(devices=2).fit(model)\n")
