"""DDP302: a path that a loop over a list of one takes up (`for path in [folder / "best.pt"]:`)."""

from __future__ import annotations

import pytest

from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, findings_of

SOURCE = """
import os
from pathlib import Path

import torch
import torch.distributed as dist


def save_on_master(*args, **kwargs):
    if dist.get_rank() == 0:
        torch.save(*args, **kwargs)


def train(args, model, loader):
    folder = Path(args.folder)
    for epoch in range(args.epochs):
        step(model, loader)
        paths = [folder / f"epoch{epoch}.pt"]
        for path in paths:
            save_on_master(model.state_dict(), path)
        paths = [folder / "best.pt"]
        for path in paths:
            save_on_master(model.state_dict(), path)
    model.load_state_dict(torch.load(args.folder + "/best.pt"))


if __name__ == "__main__":
    dist.init_process_group("nccl")
    train(options(), make(), load())
"""
LISTED = 'paths = [folder / "best.pt"]'
LOOP = "        for path in paths:\n            save_on_master(model.state_dict(), path)\n    model"


@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        SOURCE.replace(LOOP, LOOP.replace("in paths", 'in [folder / "best.pt"]')),
        SOURCE.replace(LISTED, 'paths = (folder / "best.pt",)'),
    ],
)
def test_the_file_of_the_last_round(source: str) -> None:
    (found,) = findings_of(MissingBarrier, source)
    assert found.message.startswith("rank 0 alone writes here (in line 11), and every rank uses it in line")


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace(LISTED, f'{LISTED}\n        paths.append(folder / "last.pt")'),  # which of them is it?
        SOURCE.replace(LISTED, 'paths = [folder / "best.pt", folder / "last.pt"]'),
        SOURCE.replace(LISTED, 'paths = [*names(folder)]'),
        SOURCE.replace(LISTED, 'paths = [folder / f"best{dist.get_rank()}.pt"]'),  # the rank's own
        SOURCE.replace(LOOP, LOOP.replace("            save", '            path = named(path)\n            save')),  # another one
        SOURCE.replace('"/best.pt"', '"/first.pt"'),  # another file
        SOURCE.replace("    model.load", "    dist.barrier()\n    model.load"),  # all wait
    ],
)
def test_lists_that_do_not_say_which_file(source: str) -> None:
    check_nothing(MissingBarrier, source)
