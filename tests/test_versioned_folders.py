"""DDP202 leaves files below a folder that Lightning numbers for each process."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

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
