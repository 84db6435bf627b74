"""DDP202 leaves files below a folder that Lightning numbers, and says that what each rank has of its own is gathered first."""

from __future__ import annotations

import pytest

from codemods.analysis.output.rank_data import rank_local
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of, project_of

SCRIPT = """\
import json

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger


def main(conf, net):
    {logger}
    {folder}
    with open({path}, "w") as f:
        json.dump(conf, f)
    pl.Trainer(devices=4, strategy="ddp", logger=logger).fit(net)


if __name__ == "__main__":
    main(read(), make())
"""
NUMBERED = 'logger = TensorBoardLogger("logs", "first")'


def script(logger: str, folder: str, path: str) -> str:
    return SCRIPT.format(logger=logger, folder=folder, path=path)


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("pass", 'logger.log_dir + "/conf.json"'),
        ("out = logger.log_dir", 'f"{out}/conf.json"'),
        ('conf["out"] = logger.log_dir', 'conf["out"] + "/conf.json"'),
    ],
)
def test_a_folder_of_each_process(folder: str, path: str) -> None:
    check_nothing(UnguardedFileIo, script(NUMBERED, folder, path))
    check_nothing(UnguardedFileIo, script(NUMBERED.replace("TensorBoardLogger", "CSVLogger"), folder, path))
    check_nothing(UnguardedFileIo, script(NUMBERED.replace('"first")', '"first", version=None)'), folder, path))
    check_nothing(UnguardedFileIo, script(NUMBERED.replace('"first")', '"first", version=conf.version)'), folder, path))


@pytest.mark.parametrize(
    ("logger", "path"),
    [
        ('logger = TensorBoardLogger("logs", "first", version="a")', 'logger.log_dir + "/conf.json"'),
        ('logger = TensorBoardLogger("logs", "first", 3)', 'logger.log_dir + "/conf.json"'),
        (NUMBERED, 'logger.save_dir + "/conf.json"'),
        (NUMBERED, 'conf["log_dir"] + "/conf.json"'),
        ('logger = TensorBoardLogger("logs", **conf)', 'logger.log_dir + "/conf.json"'),
    ],
)
def test_a_folder_of_all(logger: str, path: str) -> None:
    (found,) = findings_of(UnguardedFileIo, script(logger, "pass", path))
    assert "every rank comes here" in found.message


def test_a_field_that_a_property_gives() -> None:
    source = """\
import shutil

import lightning.pytorch as pl
from lightning.pytorch.loggers import TensorBoardLogger


class Run(pl.LightningModule):
    def __init__(self, best):
        self.best = best
        self.board = TensorBoardLogger("logs")

    @property
    def folder(self):
        return {}

    def on_fit_end(self):
        self.best.close()
        shutil.copy(self.best.path, self.folder + "/best.pt")
"""
    check_nothing(UnguardedFileIo, source.format("self.board.log_dir"))
    assert findings_of(UnguardedFileIo, source.format("self.best.folder"))


EVALUATION = """\
import numpy as np
import torch.distributed as dist


def evaluate(net, loader, args):
    rank = dist.get_rank()
    rows = []
    for batch in {over}:
        rows.append(net(batch).score)
    {more}
    np.savetxt("rows.txt", rows)
    if rank == 0:
        args.note()


def main(args):
    dist.init_process_group("nccl")
    evaluate(make(), loader_of(args), args)


if __name__ == "__main__":
    main(read())
"""


def test_rows_of_the_batches_of_each_rank_are_gathered_first() -> None:
    (found,) = findings_of(UnguardedFileIo, EVALUATION.format(over="loader", more="pass"))
    assert "the loop in line 8 fills `rows` batch by batch" in found.reason
    assert found.fix is None
    for over, more in (("args.names", "pass"), ("loader", "rows = gather(rows)")):
        (found,) = findings_of(UnguardedFileIo, EVALUATION.format(over=over, more=more))
        assert "batch by batch" not in (found.reason or "")


NET = """\
import json

import lightning.pytorch as pl


class Net(pl.LightningModule):
    def test_step(self, batch, i):
        self.{called}(self(batch), batch)

    def count(self, made, wanted):
        self.losses.append((made - wanted).mean())

    def on_test_end(self):
        self.losses = sorted(self.losses)
        mean = sum(self.losses) / len(self.losses)
        with open("mean.json", "w") as f:
            json.dump(mean, f)
"""


def test_what_a_method_of_a_step_fills() -> None:
    for called, own in (("count", "`self.losses` is filled in Net.count with what this rank has seen"), ("show", "")):
        project = project_of(NET.format(called=called))
        module = project.module("module.py")
        assert module is not None
        (hook,) = (f for f in module.functions if f.name == "on_test_end")
        assert rank_local(project, module, hook, hook.body) == own
