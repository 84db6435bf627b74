"""A rank that chooses which function is called."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """\
import torch
import torch.distributed as dist


def serve(rank, world):
    print("serving", world)
    dist.all_reduce(torch.ones(1))


def work(rank, world):
    print("working", world)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    {call}
    dist.destroy_process_group()
"""
FILES = {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}


@pytest.mark.parametrize(
    "call",
    [
        "(serve if rank == 0 else work)(rank, world)",
        "(work if rank else serve)(rank, world)",
        "[serve, work][min(rank, 1)](rank, world)",
        "[serve, work][rank != 0](rank, world)",
        "({0: serve}).get(rank, work)(rank, world)",
        "roles = [serve] + [work] * (world - 1)\n    roles[rank](rank, world)",
        "roles = {0: serve, 1: work}\n    role = roles[dist.get_rank()]\n    role(rank, world)",
        "role = serve if rank == 0 else work\n    role(rank, world)",
        "roles = {0: serve}\n    roles.get(rank, work)(rank, world)",
    ],
)
def test_a_function_that_some_ranks_alone_call_goes_on_printing(call: str) -> None:
    """Under a guard for rank 0 nobody would print the line of `work`."""
    check_nothing(UnguardedPrint, PROGRAM.format(call=call), files=FILES)


@pytest.mark.parametrize(
    "call",
    [
        "serve(rank, world)",
        "(serve if world > 2 else work)(rank, world)",
        "[serve, work][world % 2](rank, world)",
        "for step in [serve, work]:\n        step(rank, world)",
        "roles = [serve, work]\n    roles[0](rank, world)",
    ],
)
def test_a_function_that_every_rank_calls(call: str) -> None:
    assert findings_of(UnguardedPrint, PROGRAM.format(call=call), FILES)
