"""DDP411: pieces that a loop cuts a batch into are as many on each rank; pieces of an uneven share are not."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import findings_of

SPLIT = """\
def split(rows, marks, size):
    out = []
    for first in range(0, len(rows), size):
        last = first + size
        part = rows[first:last]
        out.append((part, marks[first:last]))
    return out
"""
PROGRAM = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from pieces import split


def run(model, loader):
    for batch in loader:
        for part in {parts}:
            loss = model(part).mean()
            dist.all_reduce(loss)
            loss.backward()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    data = Rows()
    loader = DataLoader(data, batch_size=8, collate_fn=pad, sampler=DistributedSampler(data))
    run(torch.nn.parallel.DistributedDataParallel(Net()), loader)
"""
SHARES = """\
import torch
import torch.distributed as dist
from pieces import split


def run(model, rows):
    mine = rows[dist.get_rank() :: dist.get_world_size()]
    for part in {parts}:
        loss = model(part).mean()
        dist.all_reduce(loss)
        loss.backward()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    run(torch.nn.parallel.DistributedDataParallel(Net()), Rows().read())
"""
OTHERS = [
    SPLIT,
    SPLIT.replace("        last = first + size\n", "").replace("first:last", "first : first + size"),
    SPLIT.replace("first + size", "min(first + size, len(rows))"),
    SPLIT.replace("len(rows)", "rows.shape[0]"),
    SPLIT.replace("len(rows)", "rows.size(0)"),
    "def split(rows, marks, size):\n    return [rows[i : i + size] for i in range(0, len(rows), size)]\n",
]


@pytest.mark.parametrize("split", OTHERS)
def test_pieces_of_a_batch(split: str) -> None:
    assert not findings_of(UnevenSteps, PROGRAM.format(parts="split(batch[0], batch[1], 4)"), {"pieces.py": split})


@pytest.mark.parametrize("split", [OTHERS[0], OTHERS[1], OTHERS[-1]])
def test_pieces_of_an_uneven_share(split: str) -> None:
    assert findings_of(UnevenSteps, SHARES.format(parts="split(mine, mine, 4)"), {"pieces.py": split})


@pytest.mark.parametrize(
    "split",
    [
        SPLIT.replace("range(0, len(rows), size)", "range(marks, len(rows), size)"),  # each rank begins at its own place
        "def split(rows, rank, size):\n    return [row for row in rows[rank :: size]]\n",
    ],
)
def test_pieces_that_begin_at_the_rank(split: str) -> None:
    parts = "split(rows, dist.get_rank(), dist.get_world_size())"
    split = split.replace("marks[first:last]", "part")
    assert findings_of(UnevenSteps, SHARES.format(parts=parts), {"pieces.py": split})
