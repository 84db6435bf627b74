"""DDP305: a handler sets a flag, and behind it the run is made again: by the rank that was caught, and by no other."""

from __future__ import annotations

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_told

SOURCE = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def fit(model, loader, size):
    for batch in loader(size):
        model(batch).mean().backward()


def main(loader):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
    for size in (64, 32):
        failed = False
        try:
            fit(model, loader, size)
        except RuntimeError as error:
            print(error)
            failed = True
        if TEST:
            fit(model, loader, size // 2)
"""


def test_the_rank_that_was_caught_alone_goes_on_there() -> None:
    found = check_told(OneRankDecision, SOURCE.replace("TEST", "failed"), reason="by a reduced flag")
    assert "this rank alone calls" in found.message


def test_the_others_go_on_where_the_flag_says_that_all_went_well() -> None:
    found = check_told(OneRankDecision, SOURCE.replace("TEST", "not failed"), reason="let the exception end the process")
    assert "this rank goes on without" in found.message
