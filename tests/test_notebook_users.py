"""A class of a module that only notebooks of one process name is run by no ranks."""

from __future__ import annotations

import json

import pytest

from codemods.engine.find import find_in
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import project_of

NET = """\
import lightning.pytorch as pl


class Reader(pl.LightningModule):
    def validation_step(self, batch, i):
        self.log("val/loss", self.loss(batch), on_epoch=True)
"""
TRAIN = """\
import lightning.pytorch as pl
from other import Net

if __name__ == "__main__":
    pl.Trainer(devices=4, strategy="ddp").fit(Net())
"""


def notebook(*lines: str) -> str:
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cell["source"] = "\n".join(lines)
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


IMPORTS = ("import lightning.pytorch as pl", "from nets import Reader", "model = Reader()")


def told(*lines: str) -> bool:
    project = project_of(NET, {"train.py": TRAIN, "other.py": "class Net: ...\n", "look.ipynb": notebook(*lines)}, path="nets.py")
    module = project.module("nets.py")
    assert module is not None
    return bool(find_in(module, project, [UnsyncedMetric()]))


@pytest.mark.parametrize(
    "lines",
    [
        IMPORTS,  # it only looks at it
        (*IMPORTS, "trainer = pl.Trainer(gpus=1 if torch.cuda.is_available() else 0)", "trainer.fit(model)"),
        (*IMPORTS, "trainer = pl.Trainer(max_epochs=3, devices=[0])", "trainer.fit(model)"),
        # a class of its own of that name
        ("import lightning.pytorch as pl", "class Reader(pl.LightningModule):", "    pass", "pl.Trainer().fit(Reader())"),
    ],
)
def test_notebooks_of_one_process(lines: tuple[str, ...]) -> None:
    assert not told(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        (*IMPORTS, "pl.Trainer().fit(model)"),
        (*IMPORTS, "pl.Trainer(devices=2).fit(model)"),
        (*IMPORTS, "pl.Trainer(devices=1, num_nodes=2).fit(model)"),
        (*IMPORTS, "trainer.fit(model)"),  # one that is made elsewhere
        (*IMPORTS, "train(model)"),
        (*IMPORTS, "from accelerate import notebook_launcher", "notebook_launcher(work, (model,), num_processes=2)"),
        (*IMPORTS, "!torchrun --nproc_per_node 2 train.py"),
    ],
)
def test_notebooks_that_may_start_ranks(lines: tuple[str, ...]) -> None:
    assert told(*lines)


def test_a_class_of_the_notebook_itself() -> None:
    for trainer, count in (("pl.Trainer(gpus=1)", 0), ("pl.Trainer(devices=2, strategy='ddp_notebook')", 1)):
        text = notebook(NET, f"{trainer}.fit(Reader())")
        files = {"train.py": TRAIN, "other.py": "class Net: ...\n", "own.ipynb": text}
        project = project_of("x = 1\n", files).seen_from("own.ipynb")
        module = project.module("own.ipynb")
        assert module is not None
        assert len(find_in(module, project, [UnsyncedMetric()])) == count
