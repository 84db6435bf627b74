from __future__ import annotations

import pytest

from codemods.data_loading.shared_out_twice import SharedOutTwice
from ddpfix.testing import check_nothing, check_told

ACCELERATE = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rows(Dataset):
    def __init__(self, path, accelerator=None):
        self.rank, self.world = 0, 1
        if accelerator is not None:
            self.rank, self.world = accelerator.process_index, accelerator.num_processes
        self.rows = {rows}

    def __getitem__(self, index):
        return self.rows[index]


def train(model, optimizer, path):
    accelerator = Accelerator()
    data = Rows(path, accelerator)
    loader = {loader}
    {prepare}
    for batch in loader:
        accelerator.backward(model(batch).mean())
        optimizer.step()
"""
PREPARE = "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)"
ALL = "list(open(path))"
ONCE = "share the data out once"


def accelerate(loader: str = "DataLoader(data, batch_size=4)", rows: str = ALL, prepare: str = PREPARE) -> str:
    return ACCELERATE.format(loader=loader, rows=rows, prepare=prepare)


def test_a_sampler_of_a_loader_that_is_prepared() -> None:
    found = check_told(SharedOutTwice, accelerate("DataLoader(data, 4, sampler=DistributedSampler(data))"), reason=ONCE)
    assert "`accelerator.prepare` in line 20 deals its batches out again" in found.message
    assert found.evidence[0].text == "a DistributedSampler gives each rank its part"


@pytest.mark.parametrize(
    "rows",
    [
        "list(open(path))[self.rank :: self.world]",
        "[row for i, row in enumerate(open(path)) if i % self.world == self.rank]",
    ],
)
def test_a_data_set_that_takes_the_part_of_its_rank(rows: str) -> None:
    found = check_told(SharedOutTwice, accelerate(rows=rows), reason=ONCE)
    assert found.evidence[0].text == "the data set takes the part of its rank"


RAW = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def train(model, files, read):
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    own = {own}
    loader = DataLoader(own, batch_size=4, sampler={sampler})
    for batch in loader:
        model(batch).mean().backward()
"""


def raw(own: str = "files[rank::world_size]", sampler: str = "DistributedSampler(own)") -> str:
    return RAW.format(own=own, sampler=sampler)


@pytest.mark.parametrize("sampler", ["DistributedSampler(own)", "DistributedSampler(own, num_replicas=world_size, rank=rank)"])
def test_a_sampler_over_the_part_of_a_rank(sampler: str) -> None:
    found = check_told(SharedOutTwice, raw(sampler=sampler), reason=ONCE)
    assert "this sampler deals it out over the ranks again" in found.message


SET_UP = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def part_of(names):
    return names[dist.get_rank() :: dist.get_world_size()]


def set_up(names, mode, read):
    {choice}
    return read(own)


def main(names, read, model):
    dist.init_process_group("nccl")
    rows = set_up(names, "val", read)
    for batch in DataLoader(rows, 4, sampler=DistributedSampler(rows)):
        model(batch)
"""


def test_a_part_that_only_one_mode_takes() -> None:
    sure = "own = part_of(names)"
    by_mode = "if mode == 'train':\n        own = part_of(names)\n    else:\n        own = names"
    check_told(SharedOutTwice, SET_UP.format(choice=sure), reason=ONCE)
    check_nothing(SharedOutTwice, SET_UP.format(choice=by_mode))


def test_what_is_read_of_the_part_of_a_rank() -> None:
    check_told(SharedOutTwice, raw("[read(name) for name in files[rank::world_size]]"), reason=ONCE)


LIGHTNING = """\
import lightning.pytorch as pl
from torch.utils.data import DataLoader


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        rows = {rows}
        return DataLoader(rows, batch_size=4)


def main(model):
    pl.Trainer(devices={devices}{more}).fit(model, datamodule=Data())
"""


OWN_ROWS = "self.rows[self.trainer.global_rank :: self.trainer.world_size]"


def lightning(rows: str = OWN_ROWS, devices: str = "4", more: str = "") -> str:
    return LIGHTNING.format(rows=rows, devices=devices, more=more)


def test_a_part_that_lightning_shares_out() -> None:
    found = check_told(SharedOutTwice, lightning(), reason=ONCE)
    assert "Lightning puts a sampler in" in found.message


@pytest.mark.parametrize(
    "source",
    [
        accelerate(),
        accelerate("DataLoader(data, 4, sampler=DistributedSampler(data))", prepare="model = accelerator.prepare(model)"),
        accelerate(rows="list(open(path))[self.rank]"),
        accelerate(rows="list(open(path))[:: self.world]"),
        accelerate(rows="[row for i, row in enumerate(open(path)) if i % 10 == 0]"),
        accelerate("DataLoader(data, 4, sampler=sampler_of(data))"),
        raw("files"),
        raw("files[:1000]"),
        raw(sampler="DistributedSampler(files)"),
        raw(sampler="None"),
        raw(sampler="DistributedSampler(own, num_replicas=local_size, rank=local_rank)"),
        lightning("self.rows"),
        lightning(devices="1"),
        lightning(more=", use_distributed_sampler=False"),
        lightning().replace("train_dataloader", "val_dataloader"),
    ],
)
def test_what_is_shared_out_once(source: str) -> None:
    check_nothing(SharedOutTwice, source)


FEED = """\
from torch.utils.data import DataLoader, DistributedSampler


def loader_of(data, spread=False):
    sampler = {sampler}
    return DataLoader(data, batch_size=4, sampler=sampler)
"""
PROGRAM = """\
from accelerate import Accelerator
from feed import loader_of


def train(model, data):
    accelerator = Accelerator()
    loader = loader_of(data)
    model, loader = accelerator.prepare(model, loader)
"""


def test_a_loader_of_another_file_that_is_prepared() -> None:
    always = {"feed.py": FEED.format(sampler="DistributedSampler(data)")}
    found = check_told(SharedOutTwice, PROGRAM, reason=ONCE, files=always)
    assert "`accelerator.prepare` deals the batches of `loader` out again" in found.message
    assert found.evidence[0].path == "feed.py"
    # one of the programs that share the helper asks for the sampler: this one does not
    asked = {"feed.py": FEED.format(sampler="DistributedSampler(data) if spread else None")}
    check_nothing(SharedOutTwice, PROGRAM, files=asked)


def test_a_sampler_for_one_process() -> None:
    check_nothing(SharedOutTwice, accelerate("DataLoader(data, 4, sampler=DistributedSampler(data, num_replicas=1, rank=0))"))


def test_tests_of_a_repository() -> None:
    check_nothing(SharedOutTwice, raw(), path="tests/test_data.py")


TRAINER = """\
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, Sampler
from transformers import Trainer


class EasyFirst(Sampler):
    def __init__(self, data, num_replicas=None, rank=None):
        self.data = data
        self.num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank

    def __iter__(self):
        order = sorted(range(len(self.data)), key=lambda i: len(self.data[i]))
        return iter(order{cut})


class OwnTrainer(Trainer):
    def _get_train_sampler(self, train_dataset=None):
        return {sampler}
{more}
"""
CUT = "[self.rank :: self.num_replicas]"
OF_PROCESSES = "num_replicas=self.args.world_size, rank=self.args.process_index"
NEW = {"requirements.txt": "transformers>=4.46,<5\n"}


def trainer(sampler: str = f"EasyFirst(self.train_dataset, {OF_PROCESSES})", cut: str = CUT, more: str = "") -> str:
    return TRAINER.format(sampler=sampler, cut=cut, more=more)


@pytest.mark.parametrize(
    "sampler",
    [
        f"EasyFirst(self.train_dataset, {OF_PROCESSES})",
        "EasyFirst(self.train_dataset)",
        "DistributedSampler(self.train_dataset, shuffle=False)",
        f"DistributedSampler(self.train_dataset, {OF_PROCESSES})",
    ],
)
def test_a_sampler_with_the_part_of_a_rank_that_a_trainer_is_given(sampler: str) -> None:
    found = check_told(SharedOutTwice, trainer(sampler), reason=ONCE, files=NEW)
    assert "the Trainer gives the loader to `accelerator.prepare`" in found.message


@pytest.mark.parametrize(
    "sampler",
    [
        "EasyFirst(self.train_dataset, num_replicas=1, rank=0)",  # the whole order on every rank: Accelerate shares it out
        "DistributedSampler(self.train_dataset, num_replicas=1, rank=0)",
        "DistributedSampler(self.train_dataset, **self.options)",
        "super()._get_train_sampler()",
    ],
)
def test_a_trainer_that_is_given_the_whole_order(sampler: str) -> None:
    check_nothing(SharedOutTwice, trainer(sampler), files=NEW)


def test_a_sampler_of_a_trainer_that_keeps_all() -> None:
    check_nothing(SharedOutTwice, trainer(cut=""), files=NEW)


@pytest.mark.parametrize("pin", ["transformers==4.28.1", "transformers", "transformers>=4.20", ""])
def test_versions_that_may_not_prepare_the_loader(pin: str) -> None:
    """Until 4.31 the Trainer did not share the loader out, and its sampler had to."""
    check_nothing(SharedOutTwice, trainer(), files={"requirements.txt": f"{pin}\n"})


def test_a_trainer_that_makes_its_loader_itself() -> None:
    own = """
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=4, sampler=self._get_train_sampler())
"""
    check_nothing(SharedOutTwice, trainer(more=own), files=NEW)


def test_a_trainer_of_another_package_with_a_method_of_this_name() -> None:
    other = trainer().replace("from transformers import", "from sentence_transformers import")
    check_nothing(SharedOutTwice, other.replace("Trainer)", "SentenceTransformerTrainer)"), files=NEW)
