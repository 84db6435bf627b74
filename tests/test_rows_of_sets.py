"""DDP404 where the rows of a data set stand in the order of a set."""

from __future__ import annotations

import pytest

from codemods.data_loading.unordered_labels import UnorderedLabels
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = """\
import os
import random

import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


"""
TRAIN = """

def main(model, rows, folder):
    dist.init_process_group("nccl")
    data = Rows(rows, folder)
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for epoch in range(3):
        for x in loader:
            model(x).mean().backward()
"""
LIGHTNING = """\
import lightning.pytorch as pl
from torch.utils.data import DataLoader, Dataset


"""
MODULE = """

class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Rows(self.rows, self.folder), batch_size=8, shuffle=True)


def main(rows, folder):
    trainer = pl.Trainer(devices=2, strategy="ddp")
    trainer.fit(make(), Data(rows, folder))
"""


def rows(made: str, *, item: str = "self.rows[index]", more: str = "") -> str:
    return (
        "class Rows(Dataset):\n    def __init__(self, rows, folder):\n        self.folder = folder\n"
        f"        {made}\n{more}\n    def __len__(self):\n        return len(self.rows)\n\n"
        f"    def __getitem__(self, index):\n        return {item}\n"
    )


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ("self.rows = list({r.strip() for r in rows})", "self.rows = sorted({r.strip() for r in rows})"),
        ("self.rows = list(set(str(r) for r in rows))", "self.rows = sorted(set(str(r) for r in rows))"),
        (
            "images = {p.stem: p for p in rows}\n        self.rows = list(images.keys() & rows.keys())",
            "images = {p.stem: p for p in rows}\n        self.rows = sorted(images.keys() & rows.keys())",
        ),
        (
            "names = {r.name for r in rows}\n        self.rows = list(names)",
            "names = {r.name for r in rows}\n        self.rows = sorted(names)",
        ),
    ],
)
def test_rows_of_texts(made: str, after: str) -> None:
    before, wanted = (HEAD + rows(m) + TRAIN for m in (made, after))
    (found,) = check_transformed(UnorderedLabels, before, wanted, unsafe=True)
    assert "an epoch has some samples twice and others never" in found.message


def test_rows_that_are_taken_for_names_of_files() -> None:
    item = "open(os.path.join(self.folder, self.rows[index])).read()"
    before, after = (HEAD + rows(f"self.rows = {f}(set(rows))", item=item) + TRAIN for f in ("list", "sorted"))
    check_transformed(UnorderedLabels, before, after, unsafe=True)


def test_a_loader_of_lightning() -> None:
    before, after = (LIGHTNING + rows(f"self.rows = {f}({{r.stem for r in rows}})") + MODULE for f in ("list", "sorted"))
    check_transformed(UnorderedLabels, before, after, unsafe=True)


def test_a_set_that_no_list_is_made_of_in_place_is_told() -> None:
    source = HEAD + rows("self.rows = [r for r in {r.stem for r in rows} if r]") + TRAIN
    check_told(UnorderedLabels, source, reason="sort it where it is made a list")


@pytest.mark.parametrize(
    "made",
    [
        "self.rows = sorted({r.stem for r in rows})",
        "self.rows = list(set(rows))",
        "self.rows = list({int(r) for r in rows})",
        "self.rows = list(dict.fromkeys(r.stem for r in rows))",
        "self.rows = [r.stem for r in rows]",
        "self.rows = list({r.stem for r in rows})\n        self.rows.sort()",
        "self.rows = list({r.stem for r in rows})\n        self.rows = sorted(self.rows)",
        "self.names = list({r.stem for r in rows})\n        self.rows = rows",
    ],
)
def test_rows_in_one_order(made: str) -> None:
    check_nothing(UnorderedLabels, HEAD + rows(made) + TRAIN)


@pytest.mark.parametrize(
    "module",
    [
        MODULE.replace("devices=2", "devices=1"),
        MODULE.replace("devices=2", "devices=2, use_distributed_sampler=False"),
        MODULE.replace("train_dataloader", "val_dataloader"),
        MODULE.replace("(pl.LightningDataModule)", ""),
    ],
)
def test_loaders_that_lightning_does_not_deal_out(module: str) -> None:
    check_nothing(UnorderedLabels, LIGHTNING + rows("self.rows = list({r.stem for r in rows})") + module)


def test_a_loader_without_a_sampler_for_ranks() -> None:
    train = TRAIN.replace("sampler=DistributedSampler(data)", "shuffle=True")
    check_nothing(UnorderedLabels, HEAD + rows("self.rows = list({r.stem for r in rows})") + train)
