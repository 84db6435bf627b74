"""A validation that no program hands data to: the module's hooks for it are never run."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.unfed_validation import is_hook_of_unfed_validation
from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.store.project import Project
from ddpfix.testing import findings_of

NET = (
    "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    def training_step(self, batch, n):\n        return self(batch).mean()\n\n"
    "    def validation_step(self, batch, n):\n        self.log('loss', self(batch).mean())\n"
)
DATA = (
    "import pytorch_lightning as pl\nfrom torch.utils.data import DataLoader\n\n\nclass Rows(pl.LightningDataModule):\n"
    "    def train_dataloader(self):\n        return DataLoader(self.rows)\n\n    def val_dataloader(self):\n        VAL\n"
)
TRAIN = (
    "import pytorch_lightning as pl\nfrom net import Net\nfrom rows import Rows\n\n\ndef main():\n"
    "    trainer = pl.Trainer(gpus=4, accelerator='ddp')\n    trainer.FIT\n\n\nif __name__ == '__main__':\n    main()\n"
)
OTHER = TRAIN.replace("rows", "others").replace("trainer.FIT", "trainer.fit(Net(), Rows())")


def is_unfed(fit: str = "fit(Net(), Rows())", val: str = "pass", name: str = "validation_step", **more: str) -> bool:
    texts = {"net.py": NET, "rows.py": DATA.replace("VAL", val), "train.py": TRAIN.replace("FIT", fit)}
    texts |= {f"{stem}.py": text for stem, text in more.items()}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("net.py")
    assert module is not None
    function = next(f for f in module.functions if f.name == name)
    return is_hook_of_unfed_validation(project, module, function)


@pytest.mark.parametrize("val", ["pass", "return None", "return", '"""There is none."""', "return\n        # later"])
@pytest.mark.parametrize(
    "fit", ["fit(Net(), Rows())", "fit(Net(), datamodule=Rows())", "fit(model=Net(), train_dataloaders=Rows())"]
)
def test_no_program_has_data_to_validate_on(val: str, fit: str) -> None:
    assert is_unfed(fit, val)
    assert not is_unfed(fit, val, name="training_step")


@pytest.mark.parametrize(
    ("fit", "val"),
    [
        ("fit(Net(), Rows())", "return DataLoader(self.rest)"),
        ("fit(Net(), Rows())", "if self.rest:\n            return DataLoader(self.rest)"),
        ("fit(Net(), Rows(), load())", "pass"),
        ("fit(Net(), Rows(), val_dataloaders=load())", "pass"),
        ("fit(Net(), *loaders())", "pass"),
        ("fit(Net(), **loaders())", "pass"),
        ("fit(Net(), Rows()); trainer.validate(Net(), load())", "pass"),
        ("fit(Net(), Rows())", "pass\n\n\nRows.val_dataloader = load"),
        ("fit(Net(), made())\n\n\nfrom elsewhere import TextDataModule as made", "pass"),
    ],
)
def test_data_that_a_program_may_have(fit: str, val: str) -> None:
    assert not is_unfed(fit, val)


def test_each_program_that_trains_the_module_is_asked() -> None:
    fed = DATA.replace("VAL", "return DataLoader(self.rest)")
    assert is_unfed(second=OTHER, others=DATA.replace("VAL", "pass"))
    assert not is_unfed(second=OTHER, others=fed)
    assert is_unfed(second=OTHER.replace("from net", "from net2"), others=fed, net2=NET)
    assert not is_unfed(setup="from setuptools import setup\n\nsetup(name='net')\n")


def test_a_project_without_any_such_loader_says_nothing() -> None:
    assert not is_unfed(rows=DATA.partition("    def val_dataloader")[0])


@pytest.mark.parametrize(("val", "left"), [("pass", True), ("return DataLoader(self.rest)", False)])
def test_what_such_a_hook_logs_is_left_out(val: str, *, left: bool) -> None:
    train = TRAIN.replace("FIT", "fit(Net(), Rows())").replace("net import", "module import")
    files = {"rows.py": DATA.replace("VAL", val), "train.py": train}
    assert bool(findings_of(UnsyncedMetric, NET, files)) is not left
