from __future__ import annotations

import pytest

from codemods.data_loading.missing_distributed_sampler import MissingDistributedSampler
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, Subset, TensorDataset


class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return self.rows[index]


class Stream(IterableDataset):
    def __iter__(self):
        yield from open("rows.txt")


"""
START = ("dist.init_process_group()", "rank = dist.get_rank()", "world = dist.get_world_size()")
LOOP = ("model = DDP(args.net)", "for x in loader:", "    model(x).mean().backward()")


def program(*made: str, start: tuple[str, ...] = START, loop: tuple[str, ...] = LOOP, head: str = HEAD) -> str:
    return f"{head}def main(args):\n" + "".join(f"    {line}\n" for line in (*start, *made, *loop))


def test_example_of_the_page() -> None:
    sections = MissingDistributedSampler.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(MissingDistributedSampler, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DataLoader(data, shuffle=True)", "DataLoader(data, sampler=DistributedSampler(data))"),
        ("DataLoader(data, batch_size=8)", "DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))"),
        ("DataLoader(data, 8, shuffle=args.s)", "DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=args.s))"),
    ],
)
def test_the_order_is_carried_over(before: str, after: str) -> None:
    old, new = (program("data = Rows()", f"loader = {text}") for text in (before, after))
    check_transformed(MissingDistributedSampler, old, new, unsafe=True)


def test_a_group_that_a_helper_starts() -> None:
    head = HEAD + "def setup():\n    dist.init_process_group()\n\n\n"
    old = program("data = Rows()", "loader = DataLoader(data)", start=("setup()",), head=head)
    new = old.replace("DataLoader(data)", "DataLoader(data, sampler=DistributedSampler(data, shuffle=False))")
    check_transformed(MissingDistributedSampler, old, new, unsafe=True)


def test_no_group_is_seen_to_be_there() -> None:
    start = ("if args.several:", "    dist.init_process_group()")
    source = program("data = Rows()", "loader = DataLoader(data)", start=start)
    check_told(MissingDistributedSampler, source, reason="where the process group is there by then")


def test_a_data_set_without_a_name() -> None:
    check_told(MissingDistributedSampler, program("loader = DataLoader(Rows(), shuffle=True)"), reason="give the data set a name")


def test_a_stream() -> None:
    found = check_told(MissingDistributedSampler, program("loader = DataLoader(Stream())"), reason="in `__iter__`")
    assert "all of the stream Stream" in found.message


def test_a_sampler_that_draws_at_random() -> None:
    source = program("data = Rows()", "loader = DataLoader(data, sampler=RandomSampler(data))")
    check_told(MissingDistributedSampler, source, reason="shares nothing out")


def test_batches_that_are_drawn_one_by_one() -> None:
    loop = ("model = DDP(args.net)", "batches = iter(loader)", "for _ in range(9):", "    model(next(batches)).mean().backward()")
    assert findings_of(MissingDistributedSampler, program("data = Rows()", "loader = DataLoader(data)", loop=loop))


def test_a_loader_that_another_file_makes() -> None:
    data = HEAD + "def make():\n    return DataLoader(Rows(), shuffle=True)\n"
    train = program("loader = make()", head=HEAD + "from data import make\n\n")
    assert findings_of(MissingDistributedSampler, data, {"train.py": train}, path="data.py")


@pytest.mark.parametrize(
    "made",
    [
        ("data = Rows()", "loader = DataLoader(data, sampler=DistributedSampler(data))"),
        ("data = Rows()", "loader = DataLoader(data, batch_sampler=args.batches)"),
        ("data = Rows()", "loader = DataLoader(data, sampler=args.sampler)"),
        ("data = Rows()", "loader = DataLoader(data, **args.options)"),
        ("data = Rows()", "loader = args.prepare(DataLoader(data))"),
        ("data = Subset(Rows(), range(rank, 90, world))", "loader = DataLoader(data)"),
        ("data = Rows(rank)", "loader = DataLoader(data)"),
        ("data = Rows()", "data.shard(rank, world)", "loader = DataLoader(data)"),
        ("data = Rows()", "data.rows = data.rows[rank::world]", "loader = DataLoader(data)"),
        ("data = TensorDataset(args.x[rank::world])", "loader = DataLoader(data)"),
        ("data = args.data", "loader = DataLoader(data)"),
        ("data = TensorDataset(torch.randn(9, 2))", "loader = DataLoader(data)"),
        ("files = args.files[rank]", "data = Rows(files)", "loader = DataLoader(data)"),
        (
            "data = Rows()", "loader = DataLoader(data)", "if args.several:",
            "    loader = DataLoader(data, sampler=DistributedSampler(data))",
        ),
    ],
)  # fmt: skip
def test_loaders_that_may_share_out(made: tuple[str, ...]) -> None:
    check_nothing(MissingDistributedSampler, program(*made))


def test_a_class_that_knows_its_rank() -> None:
    head = HEAD.replace('open("rows.txt")', "islice(open(self.path), dist.get_rank(), None)")
    check_nothing(MissingDistributedSampler, program("loader = DataLoader(Stream())", head=head))
    drawn = HEAD.replace('yield from open("rows.txt")', "yield torch.randn(2)")
    check_nothing(MissingDistributedSampler, program("torch.manual_seed(1)", "loader = DataLoader(Stream())", head=drawn))


@pytest.mark.parametrize(
    "loop",
    [
        ("model = args.net", *LOOP[1:]),
        (LOOP[0], "for x in loader:", "    print(model(x))"),
        (LOOP[0], "with torch.no_grad():", "    for x in loader:", "        args.update(model(x).backward())"),
        (LOOP[0], "if rank == 0:", "    for x in loader:", "        model(x).mean().backward()"),
        (LOOP[0], "for i, x in enumerate(loader):", "    if i % world == rank:", "        model(x).mean().backward()"),
        (LOOP[0], "for x in loader:", "    model(x[rank::world]).mean().backward()"),
        (LOOP[0], "for x in islice(loader, rank, None, world):", "    model(x).mean().backward()"),
        (LOOP[0], "for x in loader:", "    accelerator.backward(model(x).mean())"),
    ],
)
def test_loops_that_are_fine(loop: tuple[str, ...]) -> None:
    check_nothing(MissingDistributedSampler, program("data = Rows()", "loader = DataLoader(data)", loop=loop))


def test_frameworks_siblings_and_tests() -> None:
    made = ("data = Rows()", "loader = DataLoader(data)")
    check_nothing(MissingDistributedSampler, program(*made, head="from accelerate import Accelerator\n" + HEAD))
    check_nothing(MissingDistributedSampler, program(*made), path="tests/test_train.py")
    alone = program(*made, loop=("model = args.net", *LOOP[1:]))
    check_nothing(MissingDistributedSampler, alone, files={"several.py": program(*made)})


# Streams that Lightning and Fabric train on

STREAM = """\
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
ALL_OF_IT = ("yield from open(self.path)",)
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
    body = "".join(f"        {line}\n" for line in reads or ALL_OF_IT)
    return f"{STREAM}{body}\n{more}{MODULE.format(made=made, given=given, devices=devices)}"


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
    return f"{STREAM}        yield from open(self.path)\n\n\n{FABRIC.format(made=made, devices=devices, given=given, hands=told)}"


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


def test_a_stream_round_what_an_unknown_call_makes_of_one_that_is_shared_out() -> None:
    more = (
        "\nclass Each(IterableDataset):\n    def __init__(self, rows):\n        self.rows = rows\n\n    def __iter__(self):\n"
        "        yield from self.rows\n\n\n"
        "class Shares(IterableDataset):\n    def __init__(self, path):\n        self.path = path\n\n    def __iter__(self):\n"
        "        yield from itertools.islice(open(self.path), dist.get_rank(), None, dist.get_world_size())\n\n"
    )
    for made in ("Each(self.reader(Shares(self.path)))", "Each(self.reader(rows=pairs(Shares(self.path)), seed=1))"):
        check_nothing(MissingDistributedSampler, lightning(made=made, more=more))
        told = lightning(made=made.replace("Shares(", "Rows("), more=more)
        check_told(MissingDistributedSampler, told, reason="in `__iter__`")


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
        lightning("states = self.memory.sample(200)", "for state in states:", "    yield state"),
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


def test_streams_in_tests_of_a_repository() -> None:
    check_nothing(MissingDistributedSampler, lightning(), path="tests/test_data.py")


def test_streams_that_are_put_together() -> None:
    more = (
        "\nclass Mixed(IterableDataset):\n    def __init__(self, parts):\n        self.parts = parts\n\n    def __iter__(self):\n"
        "        for part in self.parts:\n            yield from part\n\n\n"
        "def mixed(paths, *more):\n    parts = []\n    for path in paths:\n        part = Rows(path, *more)\n"
        "        parts.append(part)\n    return Mixed(parts)\n\n"
    )
    found = check_told(MissingDistributedSampler, lightning(made="mixed(self.path)", more=more), reason="in `__iter__`")
    assert "stream Rows" in found.message
    shared = more.replace("Rows(path, *more)", "Rows(path, dist.get_rank(), *more)")
    check_nothing(MissingDistributedSampler, lightning(made="mixed(self.path)", more=shared))
    check_nothing(MissingDistributedSampler, lightning(made="Mixed([Rows(self.path, self.trainer.global_rank)])", more=more))


# A loader that a Hugging Face Trainer gets from an override

OVERRIDE = """\
from torch.utils.data import DataLoader, DistributedSampler
from transformers import Trainer


class OrderedTrainer(Trainer):
    def get_train_dataloader(self):
        return DataLoader({given})
"""


@pytest.mark.parametrize("given", ["self.train_dataset, shuffle=True", "self.train_dataset, batch_size=8, num_workers=4"])
def test_a_plain_loader_of_an_override(given: str) -> None:
    found = check_told(MissingDistributedSampler, OVERRIDE.format(given=given), reason="self.accelerator.prepare")
    assert "as it is" in found.message


@pytest.mark.parametrize(
    "source",
    [
        OVERRIDE.format(given="self.train_dataset, sampler=self._get_train_sampler()")
        + "\n    def _get_train_sampler(self):\n        return shares(self.train_dataset)\n",
        OVERRIDE.format(given="self.train_dataset, sampler=self._own_sampler()"),
        OVERRIDE.format(given="self.train_dataset, batch_sampler=self.batches"),
        OVERRIDE.format(given="self.train_dataset, **self.options"),
        OVERRIDE.format(given="self.rows[self.args.process_index :: self.args.world_size]"),
        OVERRIDE.replace("return DataLoader({given})", "return self.accelerator.prepare(DataLoader(self.train_dataset))"),
        OVERRIDE.replace("return DataLoader({given})", "return super().get_train_dataloader()"),
        OVERRIDE.format(given="self.train_dataset").replace("get_train_dataloader", "get_test_dataloader"),
        OVERRIDE.format(given="self.train_dataset").replace("(Trainer)", "(OwnTrainer)"),
        OVERRIDE.format(given="self.train_dataset").replace("from transformers import", "from trainers import"),
    ],
)
def test_overrides_that_are_fine_or_not_known(source: str) -> None:
    check_nothing(MissingDistributedSampler, source)


def test_the_sampler_of_the_trainer() -> None:
    source = OVERRIDE.format(given="self.train_dataset, sampler=self._get_train_sampler()")
    named = source.replace("        return", "        sampler = self._get_train_sampler()\n        return")
    named = named.replace("sampler=self._get_train_sampler()", "sampler=sampler")
    for text in (source, named):
        found = check_told(MissingDistributedSampler, text, reason="self.accelerator.prepare")
        assert "from transformers 4.31 on" in found.message
        files = {"requirements.txt": "transformers==4.30.2\n"}
        check_nothing(MissingDistributedSampler, text, files=files)
        check_told(MissingDistributedSampler, text, files={"requirements.txt": "transformers>=4.40\n"}, reason="prepare")


SCRIPT = """\
import os

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def main(gpu, args):
    args.rank = args.rank * args.per_node + gpu
    dist.init_process_group("nccl", rank=args.rank)
    model = DistributedDataParallel(make(args))
    {made}
    for i, x in enumerate(loader):
        model(x).mean().backward()
        if i % args.print_freq == 0:
            print(i)
"""


def test_options_of_which_another_is_the_rank() -> None:
    made = "data = ImageFolder(os.path.join(args.data, 'train'))\n    loader = DataLoader(data, args.size, shuffle=True)"
    source = SCRIPT.format(made=made)
    after = source.replace("shuffle=True)", "sampler=DistributedSampler(data))")
    after = after.replace("import DataLoader\n", "import DataLoader, DistributedSampler\n")
    check_transformed(MissingDistributedSampler, source, after, unsafe=True)


@pytest.mark.parametrize(
    "made",
    [
        "args.data = os.path.join(args.data, str(args.rank))\n    loader = DataLoader(ImageFolder(args.data))",
        "loader = DataLoader(ImageFolder(args.data + str(args.rank)))",
        "loader = DataLoader(Rows(args))",
    ],
)
def test_options_that_hold_a_share(made: str) -> None:
    check_nothing(MissingDistributedSampler, SCRIPT.format(made=made))
