"""DDP401 of streams that Lightning and Fabric train on."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_distributed_sampler import MissingDistributedSampler
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import itertools
import random

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from datasets import load_dataset
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Rows(IterableDataset):
    def __init__(self, path, *more):
        self.path = path
        self.more = more

    def __iter__(self):
"""
WHOLE = ("yield from open(self.path)",)
BY_WORKER = ("info = get_worker_info()", "yield from itertools.islice(open(self.path), info.id, None, info.num_workers)")
LONE = (
    "info = get_worker_info()",
    "if info is None:",
    "    first, step = 0, 1",
    "else:",
    "    first = dist.get_rank() * info.num_workers + info.id",
    "    step = dist.get_world_size() * info.num_workers",
    "yield from itertools.islice(open(self.path), first, None, step)",
)
MODULE = """\

class Data(pl.LightningDataModule):
    def __init__(self, path, num_workers=0):
        super().__init__()
        self.path, self.num_workers = path, num_workers

    def setup(self, stage):
        self.train_rows = {made}

    def train_dataloader(self):
        return DataLoader(self.train_rows, {given})


def main(model):
    pl.Trainer(devices={devices}).fit(model, datamodule=Data("rows.txt"))
"""


def lightning(
    *reads: str, made: str = "Rows(self.path)", given: str = "num_workers=self.num_workers", devices: str = "4", more: str = ""
) -> str:
    body = "".join(f"        {line}\n" for line in reads or WHOLE)
    return f"{HEAD}{body}\n{more}{MODULE.format(made=made, given=given, devices=devices)}"


FABRIC = """\
from lightning.fabric import Fabric


def main(model, optimizer, {hands}):
    fabric = Fabric(devices={devices})
    fabric.launch()
    train_loader = DataLoader(Rows("rows.txt"{given}), batch_size=4)
    {made}
    for x in train_loader:
        fabric.backward(model(x).mean())
"""


def fabric(made: str = "train_loader = fabric.setup_dataloaders(train_loader)", devices: str = "2", given: str = "") -> str:
    told = "fabric_rank" if given else "args"
    return f"{HEAD}        yield from open(self.path)\n\n\n{FABRIC.format(made=made, devices=devices, given=given, hands=told)}"


def test_lightning_leaves_a_stream_as_it_is() -> None:
    found = check_told(MissingDistributedSampler, lightning(), reason="in `__iter__`")
    assert "every rank reads all of the stream Rows; Lightning" in found.message
    assert [e.text for e in found.evidence] == ["Lightning gets it here", "nothing in Rows asks for the rank"]


def test_workers_that_share_it_do_not_know_the_ranks() -> None:
    found = check_told(MissingDistributedSampler, lightning(*BY_WORKER), reason="in `__iter__`")
    assert "its workers share it out, and the ranks do not" in found.message


def test_a_share_that_is_taken_only_where_there_are_workers() -> None:
    found = check_told(MissingDistributedSampler, lightning(*LONE), reason="on both ways")
    assert "without workers (`num_workers=0`) every rank reads all" in found.message


def test_a_stream_behind_another_one() -> None:
    more = (
        "\nclass Shuffled(IterableDataset):\n    def __init__(self, rows):\n        self.rows = rows\n\n    def __iter__(self):\n"
        "        held = []\n        for row in self.rows:\n            held.append(row)\n        random.shuffle(held)\n"
        "        yield from held\n\n"
    )
    found = check_told(MissingDistributedSampler, lightning(made="Shuffled(Rows(self.path))", more=more), reason="in `__iter__`")
    assert "stream Rows" in found.message
    check_nothing(MissingDistributedSampler, lightning(made="Shuffled(Rows(self.path, dist.get_rank()))", more=more))


@pytest.mark.parametrize(
    "made",
    [
        'load_dataset("c4", split="train", streaming=True)',
        'load_dataset("c4", split="train", streaming=True).shuffle(seed=1).with_format("torch")',
        'load_dataset("c4", split="train").to_iterable_dataset(num_shards=64)',
    ],
)
def test_a_stream_of_datasets(made: str) -> None:
    check_told(MissingDistributedSampler, lightning(made=made), reason="split_dataset_by_node")


def test_a_stream_that_fabric_gets() -> None:
    found = check_told(MissingDistributedSampler, fabric(), reason="in `__iter__`")
    assert "Fabric gives a sampler" in found.message


@pytest.mark.parametrize(
    "source",
    [
        lightning(devices="1"),
        lightning(given="num_workers=2, worker_init_fn=share"),
        lightning(given="**options"),
        lightning("yield from itertools.islice(open(self.path), dist.get_rank(), None, dist.get_world_size())"),
        lightning(made="Rows(self.path, self.trainer.global_rank)"),
        lightning(made='load_dataset("c4", split="train")'),
        lightning(made='load_dataset("c4", data_files=files_of(dist.get_rank()), streaming=True)'),
        lightning(made='load_dataset("c4", streaming=True).shard(4, index)'),
        lightning(more="from datasets.distributed import split_dataset_by_node\n", made='load_dataset("c4", streaming=True)'),
        lightning("while True:", "    yield random.choice(self.more)"),
        lightning("for _ in range(1000):", "    yield torch.randn(3)"),
        lightning(*LONE, given="num_workers=4"),
        lightning(*LONE, given="num_workers=workers_of(self)"),
        lightning().replace("train_dataloader", "val_dataloader"),
        lightning().replace("(IterableDataset)", "(UnknownStream)"),
    ],
)
def test_streams_that_are_shared_or_not_for_several_ranks(source: str) -> None:
    check_nothing(MissingDistributedSampler, source)


@pytest.mark.parametrize(
    "source",
    [
        fabric(devices="1"),
        fabric(made="val_loader = fabric.setup_dataloaders(val_loader)"),
        fabric(made="pass"),
        fabric(given=", fabric_rank"),
        "from accelerate import Accelerator\n"
        + fabric(made="train_loader = Accelerator().prepare(train_loader)").replace("from lightning.fabric import Fabric", ""),
    ],
)
def test_loaders_that_fabric_does_not_train_on(source: str) -> None:
    check_nothing(MissingDistributedSampler, source)


def test_a_function_that_the_stream_calls_knows_the_rank() -> None:
    more = "\ndef part_of(path):\n    return itertools.islice(open(path), dist.get_rank(), None, dist.get_world_size())\n\n"
    check_nothing(MissingDistributedSampler, lightning("yield from part_of(self.path)", more=more))


def test_tests_of_a_repository() -> None:
    check_nothing(MissingDistributedSampler, lightning(), path="tests/test_data.py")
