"""A parameter of any name by which a process joins its group is the global rank, in the functions that it is handed to, too."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.wrong_rank import WrongRank
from ddpfix.testing import check_nothing, findings_of

TRAIN = """
import json

import torch
import torch.distributed as dist


def fit(worker_number, epochs):
    scores = torch.zeros(1)
    for epoch in range(epochs):
        dist.all_reduce(scores)
        {guard}:
            with open("scores.json", "w") as out:
                json.dump({{"scores": scores.item()}}, out)


def run(worker_number, total):
    dist.init_process_group("gloo", init_method=f"tcp://{{host()}}:2345", world_size=total, {joined})
    fit(worker_number, 3)
    dist.destroy_process_group()
"""
MAIN = """
import torch.multiprocessing as mp

from train import *

if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
"""


def test_a_number_that_the_group_is_joined_by_is_the_rank() -> None:
    source = TRAIN.format(guard="if worker_number == 0 and epoch <= 1", joined="rank=worker_number")
    check_nothing(UnguardedFileIo, source, files={"main.py": MAIN})
    check_nothing(WrongRank, source, files={"main.py": MAIN})  # the number on a node is the same: there is one node


@pytest.mark.parametrize(
    ("guard", "joined"),
    [
        ("if epoch == 0", "rank=worker_number"),  # asks for something else
        ("if worker_number >= 0", "rank=worker_number"),  # so does every rank
    ],
)
def test_what_keeps_no_rank_out(guard: str, joined: str) -> None:
    assert findings_of(UnguardedFileIo, TRAIN.format(guard=guard, joined=joined), {"main.py": MAIN})


def test_another_number_of_the_same_name() -> None:
    joined = TRAIN.format(guard="if worker_number == 0", joined="rank=worker_number")
    source = joined.replace("fit(worker_number, 3)", "fit(total, 3)").replace("worker_number", "place")
    assert findings_of(UnguardedFileIo, source, {"main.py": MAIN})
