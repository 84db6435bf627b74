"""DDP301: what a function does besides its wait stands under a test for rank 0 already: the test round the call goes."""

from __future__ import annotations

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_told

SOURCE = """
import torch
import torch.distributed as dist


def store(model, rank):
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
        print("stored")
    dist.barrier()


def main(model):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model.step()
    if rank == 0:
        store(model, rank)
"""


def test_the_inner_test_is_the_one_that_stays() -> None:
    check_told(CollectiveUnderRankGuard, SOURCE, reason="stands under a test for rank 0 already: call it on every rank")


def test_what_every_rank_would_do_is_said() -> None:
    source = SOURCE.replace("    dist.barrier()", '    open("log.txt", "a")\n    dist.barrier()')
    check_told(CollectiveUnderRankGuard, source, reason="does other work besides")
