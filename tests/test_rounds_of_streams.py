"""DDP411: streams, prefetchers and generators whose end depends on the rank, and loops that the ranks leave together."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import check_nothing, check_told

RULE = UnevenSteps
WHY = "give every rank as many rounds"
HEAD = """\
import glob
import itertools
import torch
import torch.distributed as dist
from datasets.distributed import split_dataset_by_node
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.distributed import DistributedSampler


class Shards(IterableDataset):
    def __init__(self, folder):
        {files}

    def __iter__(self):
{stream}


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        while self.batch is not None:
            batch = self.batch
            self.preload()
            yield batch

    def preload(self):
        try:
            self.batch = next(self.batches)
        except StopIteration:
            self.batch = None


def batches(files, size):
    rows = []
    for i, path in enumerate(files):
        if {mine}:
            for row in torch.load(path):
                rows.append(row)
                if len(rows) == size:
                    yield torch.stack(rows)
                    rows = []


def train(net, folder, rows, loss_of, steps):
    model = DDP(net)
    loader = DataLoader(Shards(folder), batch_size=4)
    {loop}
"""
STRIDED = 'self.files = sorted(glob.glob(folder + "/*.pt"))[dist.get_rank() :: dist.get_world_size()]'
CHECKED = """files = sorted(glob.glob(folder))
        if len(files) % dist.get_world_size() != 0:
            raise ValueError("as many files for each rank")
        self.files = files[dist.get_rank() :: dist.get_world_size()]"""
ONCE = """        for path in self.files:
            for row in torch.load(path):
                yield row"""
ANEW = """        while True:
            for path in self.files:
                for row in torch.load(path):
                    yield row"""
MINE = "i % dist.get_world_size() == dist.get_rank()"
BACK = "loss_of(model(batch)).backward()"


def program(loop: str, *, files: str = STRIDED, stream: str = ONCE, mine: str = MINE) -> str:
    source = HEAD.replace("{files}", files).replace("{stream}", stream).replace("{mine}", mine)
    return source.replace("{loop}", loop.replace("\n", "\n    "))


@pytest.mark.parametrize(
    "loop",
    [
        f"for batch in loader:\n    {BACK}",
        f"for batch in Prefetcher(loader):\n    {BACK}",
        f"loader = Prefetcher(loader)\nfor step, batch in enumerate(loader):\n    {BACK}",
        f"for batch in batches(sorted(glob.glob(folder)), 4):\n    {BACK}",
        f"for batch in rows.shard(num_shards=dist.get_world_size(), index=dist.get_rank()):\n    {BACK}",
        f"for batch in DataLoader(rows.shard(dist.get_world_size(), dist.get_rank()), 4):\n    {BACK}",
        f"own = split_dataset_by_node(rows, rank=dist.get_rank(), world_size=2)\nfor batch in DataLoader(own, 4):\n    {BACK}",
        f"for batch in loader:\n    if batch.isnan().any():\n        break\n    {BACK}",
    ],
)
def test_as_many_rounds_as_the_own_share_has(loop: str) -> None:
    check_told(RULE, program(loop), reason=WHY)


def test_a_rank_that_leaves_when_its_stream_has_ended() -> None:
    attempt = "    try:\n        batch = next(it)\n    except StopIteration:\n        break\n"
    loop = f"it = iter(loader)\nwhile True:\n{attempt}    {BACK}"
    assert "leaves by `break` when it has no more" in check_told(RULE, program(loop), reason=WHY).message


@pytest.mark.parametrize(
    "loop",
    [
        f"with Join([model]):\n    for batch in loader:\n        {BACK}",
        f"with model.join():\n    for batch in loader:\n        {BACK}",
        f"for step, batch in enumerate(loader):\n    if step >= steps:\n        break\n    {BACK}",
        f"for step, batch in enumerate(itertools.cycle(loader)):\n    if batch is None:\n        break\n    {BACK}",
        f"for step, batch in zip(range(steps), loader):\n    {BACK}",
        f"for batch in itertools.islice(loader, 100):\n    {BACK}",
        f"for batch in DataLoader(rows, 4, sampler=DistributedSampler(rows)):\n    {BACK}",
        f"for batch in Prefetcher(DataLoader(rows, 4, sampler=DistributedSampler(rows))):\n    {BACK}",
        f"even = rows.select(range(len(rows) // 2 * 2))\nfor batch in even.shard(2, dist.get_rank()):\n    {BACK}",
        f"own = split_dataset_by_node(rows, dist.get_rank(), 2).take(100)\nfor batch in own:\n    {BACK}",
        f"for batch in rows.shard(8, 3):\n    {BACK}",
        "found = []\nfor batch in loader:\n    found.append(net(batch))\ndist.barrier()",
    ],
)
def test_rounds_that_are_the_same_stay(loop: str) -> None:
    check_nothing(RULE, program(loop))


def test_shares_that_are_as_long_or_have_no_end_stay() -> None:
    loop = f"for batch in loader:\n    {BACK}"
    check_nothing(RULE, program(loop, files=CHECKED))
    check_nothing(RULE, program(loop, stream=ANEW))
    check_nothing(RULE, program(loop, files='self.files = glob.glob(folder + "/*.pt")'))
    check_told(RULE, program(loop, stream=ANEW.replace("yield row", "yield row\n            break")), reason=WHY)


def test_a_generator_that_gives_all_ranks_as_many_stays() -> None:
    check_nothing(RULE, program(f"for batch in batches(glob.glob(folder), 4):\n    {BACK}", mine="i % 2 == 0"))


FILLED = HEAD.partition("class Shards")[0] + """\
class Share:
    def __init__(self, rows, rank, world, size):
        each = -(-len(rows) // world)
        self.rows, self.size, self.given = rows, size, 0
        self.first = rank * each
        self.last = min(self.first + each, len(rows))
        self.most = -(-each // size)

    def batches(self):
        mine = self.rows[self.first : self.last]
        for i in range(0, len(mine), self.size):
            COUNT
            yield mine[i : i + self.size]
        while TEST:
            self.given += 1
            yield mine[: self.size]


def train(net, rows):
    model, share = DDP(net), Share(rows, dist.get_rank(), dist.get_world_size(), 4)
    for batch in share.batches():
        model(batch).mean().backward()
"""


@pytest.mark.parametrize(
    ("count", "test", "told"),
    [
        ("self.given += 1", "self.given < self.most", False),
        ("self.given += 1", "self.given != self.most", False),
        ("self.given += 1", "self.given > self.most", True),
        ("self.seen = i", "self.given < self.most", True),
        ("self.given += 1", "self.left < self.most", True),
        ("self.given += 1", "False", True),
    ],
)
def test_a_share_that_is_filled_up(count: str, test: str, told: bool) -> None:
    source = FILLED.replace("COUNT", count).replace("TEST", test)
    if told:
        check_told(RULE, source, reason=WHY)
    else:
        check_nothing(RULE, source)
