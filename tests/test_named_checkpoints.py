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


PATH = "kept.best_model_path"


@pytest.mark.parametrize(
    "end",
    [
        f"trainer.test(net, data, ckpt_path={PATH})",
        f"net = Net.load_from_checkpoint({PATH})",
        "net = Net.load_from_checkpoint(checkpoint_path=trainer.checkpoint_callback.best_model_path)",
        f"best = {PATH}\n    if best:\n        net.load_state_dict(torch.load(best)['state_dict'])",
    ],
)
def test_the_path_of_the_best_one(end: str) -> None:
    (found,) = told(end=end)
    assert "best" in found.message and "FileNotFoundError" in found.message


@pytest.mark.parametrize(
    "end",
    [
        f"if trainer.is_global_zero:\n        net = Net.load_from_checkpoint({PATH})",
        f"best = trainer.strategy.broadcast({PATH})\n    net = Net.load_from_checkpoint(best)",
        f"if os.path.exists({PATH}):\n        net = Net.load_from_checkpoint({PATH})",
        f"try:\n        net = Net.load_from_checkpoint({PATH})\n    except FileNotFoundError:\n        pass",
        "other = ModelCheckpoint(filename='last')\n    net = Net.load_from_checkpoint(other.best_model_path)",
        f"print({PATH})",
    ],
)
def test_paths_that_no_other_rank_opens(end: str) -> None:
    assert told(end=end) == []


@pytest.mark.parametrize("strategy", ['"ddp_spawn"', 'DDPStrategy(start_method="fork")'])
def test_ranks_that_live_within_fit_alone(strategy: str) -> None:
    """The one process behind `fit` is told the path of rank 0."""
    text = PROGRAM.replace("{log}", LOG).replace("{name}", NAME).replace("{end}", f"net = Net.load_from_checkpoint({PATH})")
    found = findings_of(UnsyncedMetric, text.replace('"ddp"', strategy))
    assert not [f for f in found if "into the name" in f.message]


CONFIG = "train:\n  epochs: 9\ncheckpoint:\n  monitor: val_loss\n  filename: '{epoch:02d}-{val_loss:.4f}'\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"configs/a.yaml": CONFIG}, 1),
        ({"configs/a.yaml": CONFIG, "configs/b.yaml": CONFIG.replace("9", "3").replace("02d", "03d")}, 1),
        ({"configs/a.yaml": CONFIG, "configs/b.yaml": CONFIG.replace("-{val_loss:.4f}", "")}, 0),  # which of them is not seen
        ({"configs/a.yaml": CONFIG.replace("checkpoint:", "export:")}, 0),
        ({"configs/a.yaml": CONFIG, "setup.py": "def main(config):\n    config.checkpoint.filename = 'best'\n"}, 0),
    ],
)
def test_a_name_of_the_configuration(files: dict[str, str], found: int) -> None:
    text = PROGRAM.replace("{log}", LOG).replace("{name}", "filename=data.checkpoint.filename").replace("{end}", END)
    told_of = [f for f in findings_of(UnsyncedMetric, text, files=files) if "into the name" in f.message]
    assert len(told_of) == found
