"""Projects that take modules of Lightning over, and train by a loop of their own."""

from __future__ import annotations

import pytest

from codemods.analysis.logged.own_programs import nobody_fits
from codemods.store.project import Project

NET = "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n    pass\n"
LOOP = "from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\nmodel(x).backward()\n"


def nobody(beside: str) -> bool:
    texts = {"net.py": NET, "loop.py": LOOP, "beside.py": beside}
    return nobody_fits(Project.of({path: text.encode() for path, text in texts.items()}))


@pytest.mark.parametrize(
    "beside",
    [
        "",
        "from sklearn.preprocessing import LabelEncoder\nLabelEncoder().fit(labels)\n",
        "self.model.fit(rows, targets, eval_set=held_out)\n",
        "from transformers import Trainer, TrainingArguments\nTrainer(model).train()\n",
    ],
)
def test_no_trainer_of_lightning(beside: str) -> None:
    assert nobody(beside)


@pytest.mark.parametrize(
    "beside",
    [
        "import lightning.pytorch as pl\npl.Trainer().fit(net)\n",
        "from pytorch_lightning import seed_everything\nengine.fit(net)\n",
        "def run(trainer, net):\n    trainer.fit(net)\n",
        "def run(engine, net, dm):\n    engine.fit(net, datamodule=dm)\n",
        "from .own import Trainer\nTrainer(net)\n",
        "self.get_trainer().fit(net)\n",
    ],
)
def test_what_may_be_a_trainer(beside: str) -> None:
    assert not nobody(beside)
