"""Wraps that no run comes to, in a program that a command starts on several processes."""

from __future__ import annotations

import pytest

from codemods.checkpoints.network_left_out import NetworkLeftOut
from ddpfix.testing import check_nothing, check_told

SOURCE = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(args, model, loader):
    if args.launcher == "none":
        several = False
        size = 1
    else:
        dist.init_process_group("nccl")
        size = dist.get_world_size()
        several = False
    print(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if several:
        model = DistributedDataParallel(model)
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main(*options())
"""
JOB = {"run.sh": "python -m torch.distributed.launch --nproc_per_node=$1 module.py --launcher pytorch\n"}


def test_a_name_that_is_false_in_both_arms() -> None:
    found = check_told(NetworkLeftOut, SOURCE, files=JOB, reason="set `several = True`")
    assert found.span.line == 13


def test_the_helper_may_stand_in_another_file_of_the_program() -> None:
    files = {"run.sh": "torchrun --nproc_per_node=2 train.py\n", "train.py": "from module import main\n\nmain(*options())\n"}
    check_told(NetworkLeftOut, SOURCE.partition("\n\nif __name__")[0], files=files, reason="set `several = True`")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("get_world_size()\n        several = False", "get_world_size()\n        several = True"),
        ("get_world_size()\n        several = False", "get_world_size()\n        several = size > 1"),
        ("get_world_size()\n        several = False", "get_world_size()"),
        ("    print(size)\n", "    several = several or args.several\n"),
        ("    if several:\n", "    if several or args.wraps:\n"),
        ("    for x in loader:\n", "    else:\n        model = DistributedDataParallel(model)\n    for x in loader:\n"),
        ("        optimizer.step()\n", "        dist.all_reduce(x)\n        optimizer.step()\n"),
        ("model(x).mean().backward()", "model(x).mean()"),
    ],
)
def test_nothing_where_a_run_may_wrap_or_nobody_trains(old: str, new: str) -> None:
    assert old in SOURCE
    check_nothing(NetworkLeftOut, SOURCE.replace(old, new), files=JOB)


@pytest.mark.parametrize(
    "command", ["python module.py", "torchrun --nproc_per_node=1 module.py", "torchrun --nproc_per_node=2 other.py"]
)
def test_nothing_where_no_command_starts_several(command: str) -> None:
    check_nothing(NetworkLeftOut, SOURCE, files={"run.sh": f"{command}\n", "other.py": "print(1)\n"})
