"""DDP411: a sampler that cuts its list to a multiple of what all ranks take at once gives each rank as many rows."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import findings_of

SOURCE = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler


class Dealt(Sampler):
    def __init__(self, rows, size):
        self.rows, self.size = rows, size
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def __iter__(self):
        order = list(range(len(self.rows)))
        CUT
        own = []
        for first in range(self.rank * self.size, len(order), self.world_size * self.size):
            own.extend(order[first : first + self.size])
        self.count = len(own)
        return iter(own)

    def __len__(self):
        return self.count


def main(rows):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
    loader = DataLoader(rows, batch_size=8, sampler=Dealt(rows, 8))
    for batch in loader:
        model(batch).sum().backward()
"""


def told(cut: str) -> bool:
    return bool(findings_of(UnevenSteps, SOURCE.replace("CUT", cut)))


@pytest.mark.parametrize(
    "cut",
    ["n, left = divmod(len(order), self.world_size * self.size)\n        order = order[: self.size * self.world_size * n]",
     "n = len(order) // (self.world_size * self.size)\n        order = order[: n * self.world_size * self.size]",
     "step = self.world_size * self.size\n        order = order[: len(order) // (self.world_size * 8) * (self.world_size * 8)]"],
)  # fmt: skip
def test_the_list_is_cut_first(cut: str) -> None:
    assert told("pass")
    assert not told(cut)


@pytest.mark.parametrize(
    "cut",
    ["n, left = divmod(len(order), self.size)\n        order = order[: self.size * n]",  # of one rank's batches
     "n, left = divmod(len(order), self.world_size * self.size)\n        order = order[: self.size * n]",
     "n, left = divmod(len(order), self.world_size * self.size)\n        other = order[: self.world_size * self.size * n]"],
)  # fmt: skip
def test_another_cut_leaves_shares_unequal(cut: str) -> None:
    assert told(cut)
