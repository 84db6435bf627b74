"""DDP106: shares that come to their loop through objects, dicts, heirs and data sets, and numbers that come to an own writer."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from ddpfix.testing import check_nothing, check_told

RULE = UnreducedNumber
WHY = "reduce sums and counts over the ranks first"
HEAD = """\
import math
import os
from collections import defaultdict
from itertools import islice

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import ChainDataset, DataLoader, Dataset, IterableDataset, Subset
from torch.utils.data.distributed import DistributedSampler
from torch.utils.tensorboard import SummaryWriter


def evaluate(net, batches, loss_of):
    losses = []
    with torch.no_grad():
        for x, y in batches:
            losses.append(loss_of(net(x), y).item())
    return np.mean(losses)


"""
MAIN = """


def main(net, train_set, valid_set, loss_of):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = dist.get_rank(), dist.get_world_size()
    net = DDP(net.cuda())
    {lines}


main(net_of(), set_of("train"), set_of("valid"), loss_of)
"""
SHOWN = "if rank == 0:\n    print('validation loss', loss)"


def program(body: str, lines: str) -> str:
    return HEAD + body.strip() + MAIN.replace("{lines}", lines.strip().replace("\n", "\n    "))


# Through an object that goes through the loader it was handed

ON_DEVICE = """
class OnDevice:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __iter__(self):
        for batch in self.loader:
            yield [part.to(self.device) for part in batch]
"""
SHARED = "DataLoader(valid_set, sampler=DistributedSampler(valid_set))"


def through(loader: str) -> str:
    return program(ON_DEVICE, f"loss = evaluate(net, OnDevice({loader}, 'cuda'), loss_of)\n{SHOWN}")


def test_an_object_that_goes_through_a_loader() -> None:
    check_told(RULE, through(SHARED), reason=WHY)


def test_an_object_round_a_whole_loader_or_that_takes_what_it_goes_through_elsewhere() -> None:
    check_nothing(RULE, through("DataLoader(valid_set)"))
    elsewhere = through(SHARED).replace("self.loader, self.device = loader", "self.loader, self.device = whole()")
    check_nothing(RULE, elsewhere)


# Under a key


def under_key(loaders: str) -> str:
    return program(loaders, f"both = loaders_of(train_set, valid_set)\nloss = evaluate(net, both['valid'], loss_of)\n{SHOWN}")


ONE_BY_ONE = """
def loaders_of(train_set, valid_set):
    out = {}
    for name, rows in (("train", train_set), ("valid", valid_set)):
        out[name] = DataLoader(rows, sampler=DistributedSampler(rows))
    return out
"""
WRITTEN_OUT = """
def loaders_of(train_set, valid_set):
    return {"train": DataLoader(train_set, sampler=DistributedSampler(train_set)),
            "valid": DataLoader(valid_set, sampler=DistributedSampler(valid_set))}
"""
ONE_WHOLE = """
def loaders_of(train_set, valid_set):
    return {"train": DataLoader(train_set, sampler=DistributedSampler(train_set)), "valid": DataLoader(valid_set)}
"""
PUT_WHOLE = """
def loaders_of(train_set, valid_set):
    out = {}
    out["valid"] = DataLoader(valid_set)
    out["train"] = DataLoader(train_set, sampler=DistributedSampler(train_set))
    return out
"""
BY_PHASE = """
def loaders_of(train_set, valid_set):
    out = {}
    for name, rows in (("train", train_set), ("valid", valid_set)):
        SAMPLER
        out[name] = DataLoader(rows, sampler=sampler)
    return out
"""


@pytest.mark.parametrize("loaders", [ONE_BY_ONE, WRITTEN_OUT])
def test_loaders_under_keys_that_all_share_out(loaders: str) -> None:
    check_told(RULE, under_key(loaders), reason=WHY)


@pytest.mark.parametrize(
    "loaders",
    [ONE_WHOLE, PUT_WHOLE,
     BY_PHASE.replace("SAMPLER", "sampler = DistributedSampler(rows) if name == 'train' else None"),
     BY_PHASE.replace("SAMPLER", "sampler = None\n        if name == 'train':\n            sampler = DistributedSampler(rows)"),
     BY_PHASE.replace("SAMPLER", "kept[name] = DistributedSampler(rows) if name == 'train' else None")
     .replace("sampler=sampler", "sampler=kept[name]").replace("out = {}", "out, kept = {}, {}")],
)  # fmt: skip
def test_one_of_the_loaders_is_whole(loaders: str) -> None:
    check_nothing(RULE, under_key(loaders))


# By a method that an heir has

OPEN = """
class Base:
    def eval_step(self, *args):
        raise NotImplementedError

    def evaluate(self, loader):
        out = defaultdict(list)
        for batch in loader:
            for name, value in self.eval_step(batch).items():
                out[name].append(value)
        return {name: np.mean(values) for name, values in out.items()}


class One(Base):
    def __init__(self, net, loss_of):
        self.net, self.loss_of = net, loss_of

    def eval_step(self, batch):
        x, y = batch
        loss = self.loss_of(self.net(x), y)
        return {"loss": loss.item()}
"""
ANOTHER = """

class Another(Base):
    def eval_step(self, batch):
        return {"loss": 0.0}
"""
BY_HEIR = f"loader = {SHARED}\nscores = One(net, loss_of).evaluate(loader)\nif rank == 0:\n    print(scores['loss'])"


def test_what_the_heir_of_a_method_gives() -> None:
    check_told(RULE, program(OPEN, BY_HEIR), reason=WHY)


def test_heirs_that_reduce_or_do_not_agree() -> None:
    given = '        return {"loss": loss.item()}'
    reduced = OPEN.replace(given, f"        dist.all_reduce(loss)\n{given}")
    check_nothing(RULE, program(reduced, BY_HEIR))
    check_nothing(RULE, program(OPEN + ANOTHER, BY_HEIR))


# Shares that are cut by hand


def of_rows(rows: str, body: str = "") -> str:
    lines = f"n = len(valid_set) // world\nloader = DataLoader({rows})\nloss = evaluate(net, loader, loss_of)\n{SHOWN}"
    return program(body, lines)


EVEN = """
class Part(Dataset):
    def __init__(self, rows, rank, world):
        n = len(rows) // world
        self.rows = rows[rank * n : (rank + 1) * n]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]
"""
STREAM = """
class Lines(IterableDataset):
    def __init__(self, path, rank, world):
        self.path, self.rank, self.world = path, rank, world

    def __iter__(self):
        with open(self.path) as lines:
            yield from islice(lines, self.rank, None, self.world)
"""


@pytest.mark.parametrize(
    ("rows", "body"),
    [("Subset(valid_set, range(rank * n, (rank + 1) * n))", ""),
     ("Part(valid_set, rank, world)", EVEN),
     ("ChainDataset([Lines(path, rank, world) for path in valid_set])", STREAM)],
)  # fmt: skip
def test_shares_by_the_rank(rows: str, body: str) -> None:
    check_told(RULE, of_rows(rows, body), reason=WHY)


@pytest.mark.parametrize(
    ("rows", "body"),
    [("Subset(valid_set, range(n))", ""),
     ("Part(valid_set, 0, 1)", EVEN),
     ("ChainDataset([Lines(path, 0, 1) for path in valid_set])", STREAM),
     ("Part(valid_set, rank, world)", EVEN.replace("rows[rank * n : (rank + 1) * n]", "rows"))],
)  # fmt: skip
def test_sets_that_are_whole(rows: str, body: str) -> None:
    check_nothing(RULE, of_rows(rows, body))


BY_HAND = (
    "scores = []\nfor name in SOURCE:\n    scores.append(score_of(net(read(name))))\nBETWEENscore = np.mean(scores)\n"
    "if rank == 0:\n    print(score)"
)


def test_a_loop_over_a_share_without_a_loader() -> None:
    own = BY_HAND.replace("SOURCE", "valid_set[rank::world]")
    check_told(RULE, program("", own.replace("BETWEEN", "")), reason=WHY)
    gathered = "parts = [None] * world\ndist.all_gather_object(parts, scores)\nscores = sum(parts, [])\n"
    check_nothing(RULE, program("", own.replace("BETWEEN", gathered)))
    check_nothing(RULE, program("", BY_HAND.replace("SOURCE", "valid_set").replace("BETWEEN", "")))


# The best, by a difference

BEST = """
def fit(net, loader, loss_of, sign, rank):
    best = -sign * np.inf
    for epoch in range(10):
        score = evaluate(net, loader, loss_of)
        TEST
            best = score
            if rank == 0:
                torch.save(net.module.state_dict(), "best.pt")
"""
FIT = f"fit(net, {SHARED}, loss_of, 1, rank)"


@pytest.mark.parametrize(
    "test",
    ["if sign * (score - best) > 0:", "better = sign * (score - best)\n        if better > 0:", "if best - score < 0:"],
)  # fmt: skip
def test_the_best_by_a_difference(test: str) -> None:
    check_told(RULE, program(BEST.replace("TEST", test), FIT), reason=WHY)


def test_how_far_it_went_since_the_last_time() -> None:
    check_nothing(RULE, program(BEST.replace("TEST", "if score - prev > 0:").replace("best", "prev"), FIT))
    check_nothing(RULE, program(BEST.replace("TEST", "if epoch - best_epoch > 3:"), FIT))


# A writer of the project's own

WRITER = """
class Board(SummaryWriter):
    def __init__(self, *args):
        if dist.get_rank() == 0:
            super().__init__(*args)

    def add_scalar(self, name, value, step):
        if dist.get_rank() == 0:
            super().add_scalar(name, value, step)


def fit(net, loader, loss_of, board):
    for epoch in range(10):
        loss = evaluate(net, loader, loss_of)
        board.add_scalar("validation/loss", loss, epoch)
"""
WRITES = f"board = Board('runs')\nfit(net, {SHARED}, loss_of, board)"


def test_a_writer_whose_methods_write_on_rank_0() -> None:
    check_told(RULE, program(WRITER, WRITES), reason=WHY)


def test_a_writer_that_reduces_or_writes_on_every_rank() -> None:
    reduces = WRITER.replace("step):\n        if dist", "step):\n        dist.all_reduce(value)\n        if dist")
    check_nothing(RULE, program(reduces, WRITES))
    guard = "        if dist.get_rank() == 0:\n            super().add"
    check_nothing(RULE, program(WRITER.replace(guard, guard.replace("dist.get_rank() == 0", "True")), WRITES))
