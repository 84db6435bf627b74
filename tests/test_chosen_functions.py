"""DDP301: a function that a setting chooses, and that comes to a collective, called by rank 0 alone."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from ddpfix.testing import check_nothing, check_told

RULE = CollectiveUnderRankGuard
PROGRAM = """import torch
import torch.distributed as dist


def keep_parts(net, path):
    dist.barrier()
    torch.save(net, path)


def keep_whole(net, path):
    torch.save(net, path)


def train(net, loader, args, config):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    {choice}
    for epoch, x in enumerate(loader):
        net(x).sum().backward()
        {call}
"""
BRANCHES = "if args.kind == 'parts':\n        keep = keep_parts\n    else:\n        keep = keep_whole"
CALL = "if rank == 0:\n            keep(net, 'a.pt')"


def program(*, choice: str = BRANCHES, call: str = CALL) -> str:
    return PROGRAM.format(choice=choice, call=call)


@pytest.mark.parametrize(
    "choice",
    [
        BRANCHES,
        "keep = keep_parts if args.kind == 'parts' else keep_whole",
        "keep = keep_whole\n    if config.parts:\n        keep = keep_parts",
        "keep = keep_parts",
    ],
)
def test_one_of_the_functions_waits_for_every_rank(choice: str) -> None:
    found = check_told(RULE, program(choice=choice), reason="keep does other work besides")
    assert "keep(), where it is keep_parts -> torch.distributed.barrier waits" in found.message


@pytest.mark.parametrize(
    "call",
    [
        "if rank == 0 and epoch % config.every == 0:\n            keep(net, 'a.pt')",
        "if rank == 0:\n            if epoch % config.every == 0:\n                keep(net, 'a.pt')",
    ],
)
def test_further_tests_that_ask_for_something_else(call: str) -> None:
    check_told(RULE, program(call=call), reason="keep does other work besides")


def test_a_setting_that_is_read_from_a_file_named_beside_the_choice() -> None:
    choice = f"config = torch.load(args.path)\n    {BRANCHES}"
    check_told(RULE, program(choice=choice, call="if rank == 0 and config.every:\n            keep(net, 'a.pt')"), reason="keep")


def test_a_field_that_holds_the_function() -> None:
    source = """import torch
import torch.distributed as dist


def keep_parts(net, path):
    dist.barrier()
    torch.save(net, path)


def keep_whole(net, path):
    torch.save(net, path)


class Trainer:
    def __init__(self, net, args):
        self.net = net
        self.rank = dist.get_rank()
        self.keep = keep_parts if args.parts else keep_whole

    def end(self):
        if dist.get_rank() == 0:
            self.keep(self.net, "a.pt")
"""
    check_told(RULE, source, reason="keep does other work besides")
    check_nothing(RULE, source.replace("self.keep(self.net", "keep_whole(self.net"))
    check_nothing(RULE, source.replace("dist.get_rank() == 0:", "True:"))


@pytest.mark.parametrize(
    "call",
    [
        "if rank == 0 and args.kind != 'parts':\n            keep(net, 'a.pt')",
        "if rank == 0 or args.kind == 'parts':\n            keep(net, 'a.pt')",
        "if args.kind == 'parts':\n            keep(net, 'a.pt')\n        elif rank == 0:\n            keep(net, 'a.pt')",
        "if rank == 0:\n            if not args.parts:\n                keep(net, 'a.pt')",
        "if args.sharded:\n            continue\n        if rank == 0:\n            keep(net, 'a.pt')",
        "whole = args.kind == 'whole'\n        if rank == 0 and whole:\n            keep(net, 'a.pt')",
        "keep(net, 'a.pt')",
        "if rank == 0:\n            keep(net, 'a.pt')\n        else:\n            dist.barrier()",
    ],
)
def test_a_call_that_may_leave_that_choice_out(call: str) -> None:
    check_nothing(RULE, program(call=call))


@pytest.mark.parametrize(
    "choice",
    [
        "keep = keep_whole",
        "keep = keep_whole if args.plain else torch.save",
        "keep = found(args)\n    if args.kind == 'parts':\n        keep = keep_parts",
        "for keep in (keep_parts, keep_whole):\n        keep(net, 'b.pt')",
    ],
)
def test_functions_that_wait_for_nobody_or_are_not_seen(choice: str) -> None:
    check_nothing(RULE, program(choice=choice))


def test_behind_an_exit_of_the_other_ranks() -> None:
    source = program(call="if rank != 0:\n            continue\n        keep(net, 'a.pt')")
    check_told(EarlyReturnBeforeCollective, source, reason="")
