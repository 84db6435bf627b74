"""Programs of one process beside those of several: what makes their objects, and what both call on rank 0 alone."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.engine.find import find_in
from codemods.store.project import Project

RUNNERS = """
import torch
import torch.distributed as dist


class Alone:
    def __init__(self, model):
        self.model = model

    def train(self):
        torch.save(self.model.state_dict(), "last.pt")


class Ranks:
    def __init__(self, model, rank):
        self.model, self.rank = model, rank

    def train(self):
        if self.rank == 0:
            torch.save(self.model.state_dict(), "last.pt")
        dist.barrier()


def runner(kind, model, rank=0):
    if kind == "alone":
        return Alone(model)
    elif kind == "ranks":
        return Ranks(model, rank)
    raise ValueError(kind)
"""
MAIN = """
import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from runners import runner


def one(args):
    runner({alone}, torch.nn.Linear(2, 2)).train()


def worker(rank, args):
    dist.init_process_group("nccl", rank=rank, world_size=args.gpus)
    runner({ranks}, torch.nn.Linear(2, 2), rank).train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    args.gpus = torch.cuda.device_count()
    if args.distributed and args.gpus > 1:
        mp.spawn(worker, args=(args,), nprocs=args.gpus)
    else:
        one(args)
"""


def saves(files: dict[str, str], path: str) -> int:
    project = Project.of({name: text.encode() for name, text in files.items()})
    module = project.module(path)
    assert module is not None
    return len(find_in(module, project, [UnguardedSave()]))


def test_a_class_that_the_program_of_one_process_asks_for_by_name() -> None:
    main = MAIN.format(alone='"alone"', ranks='"ranks"')
    assert saves({"runners.py": RUNNERS, "main.py": main}, "runners.py") == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ranks", torch', '"alone", torch'),  # the ranks ask for it, too
        ('"ranks", torch', "args.kind, torch"),  # they may
    ],
)
def test_a_class_that_ranks_may_ask_for(old: str, new: str) -> None:
    main = MAIN.format(alone='"alone"', ranks='"ranks"')
    assert old in main
    assert saves({"runners.py": RUNNERS, "main.py": main.replace(old, new)}, "runners.py") == 1


def test_a_class_under_another_value() -> None:
    runners = RUNNERS.replace('kind == "alone"', 'kind != "ranks"').replace('elif kind == "ranks"', "elif True")
    main = MAIN.format(alone='"alone"', ranks='"ranks"')
    assert saves({"runners.py": runners, "main.py": main}, "runners.py") == 0
    listed = RUNNERS.replace('kind == "alone"', 'kind in ("alone", "ranks")')
    assert saves({"runners.py": listed, "main.py": main}, "runners.py") == 1


SHARED = """
import torch


def keep(model, path):
    torch.save(model.state_dict(), path)
"""
DDP = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from shared import keep

if __name__ == "__main__":
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
    {guard}keep(model, "last.pt")
    dist.destroy_process_group()
"""
ALONE = """
import importlib

import torch

from shared import keep

if __name__ == "__main__":
    model = importlib.import_module("models").Net()
    keep(model, "last.pt")
"""
STARTS = "```\ntorchrun --nproc_per_node=4 train_ddp.py\npython train.py\n```\n"


def test_a_helper_that_rank_zero_of_one_program_calls_and_a_program_of_one_process() -> None:
    files = {"shared.py": SHARED, "train.py": ALONE, "README.md": STARTS}
    assert saves({**files, "train_ddp.py": DDP.format(guard="if dist.get_rank() == 0:\n        ")}, "shared.py") == 0
    assert saves({**files, "train_ddp.py": DDP.format(guard="")}, "shared.py") == 1
