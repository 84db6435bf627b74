"""DDP505: a wrapped model that leaves its device or its type between two epochs."""

from __future__ import annotations

import pytest

from codemods.checkpoints.changed_after_wrap import ChangedAfterWrap
from ddpfix.testing import check_nothing, check_told, findings_of

ALONE = """\
import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, epochs, score):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(net.cuda(rank), device_ids=[rank])
    for epoch in range(epochs):
        for rows in loader:
            model(rows).mean().backward()
        if rank == 0 and epoch % 5 == 0:
            model.cpu()
            score(model.module)
            model.cuda(rank)
"""
HELPER = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, rows):
    model = model.to("cpu")
    return model.module(rows)


def train(net, loader, epochs, device):
    model = DDP(net, device_ids=[device])
    for epoch in range(epochs):
        model = model.to(device)
        for rows in loader:
            model(rows).mean().backward()
        evaluate(model, rows)
"""


@pytest.mark.parametrize("move", ["model.cpu()", "model.to('cpu')", "model.module.to(torch.device('cpu'))", "model.half()"])
def test_a_move_on_rank_0_alone(move: str) -> None:
    found = check_told(ChangedAfterWrap, ALONE.replace("model.cpu()", move), reason="a copy of it")
    assert "on rank 0 alone the wrapped model" in found.message and "the others wait" in found.message
    assert found.severity == "hang"


def test_a_move_on_every_rank_in_a_helper() -> None:
    (found,) = findings_of(ChangedAfterWrap, HELPER)
    assert "the ranks drift apart without an error" in found.message and found.severity == "data"


def test_a_test_that_is_not_seen_to_ask_for_the_rank() -> None:
    source = HELPER.replace("        evaluate(", "        if number == 0:\n            evaluate(")
    (found,) = findings_of(ChangedAfterWrap, source)
    assert "a rank that comes here trains on alone" in found.message


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("a copy", "model.cpu()", "copy.deepcopy(model).cpu()"),
        ("behind the training", "        if rank == 0 and", "    if rank == 0 and"),
        ("in the last round", "rank == 0 and epoch % 5 == 0", "rank == 0 and epoch == epochs - 1"),
        ("the training ends there", "            model.cuda(rank)\n", "            model.cuda(rank)\n            break\n"),
        ("another model", "model.cpu()", "teacher.cpu()"),
        ("what it gives", "model.cpu()", "model(rows).cpu()"),
        ("to the device it is on", "model.cpu()", "model.to(rank)"),
        ("no way back", "            model.cuda(rank)\n", ""),
        ("no DDP", "DDP(net.cuda(rank), device_ids=[rank])", "net.cuda(rank)"),
        ("wrapped anew in each round", "    for epoch in range(epochs):\n",
         "    for epoch in range(epochs):\n        model = DDP(net.cuda(rank), device_ids=[rank])\n"),
        ("nothing is trained", ".backward()", ".item()"),
    ],
)  # fmt: skip
def test_moves_that_are_right_or_not_seen(what: str, old: str, new: str) -> None:
    assert old in ALONE
    check_nothing(ChangedAfterWrap, ALONE.replace(old, new))


def test_a_training_on_the_cpu() -> None:
    source = ALONE.replace("net.cuda(rank), device_ids=[rank]", "net").replace("nccl", "gloo")
    check_nothing(ChangedAfterWrap, source.replace("model.cuda(rank)", "model.to(rank)"))


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("a fold's own model", "        evaluate(model, rows)\n",
         "    evaluate(model, rows)\n\n\ndef folds(net, loader, epochs, device, n):\n    for _ in range(n):\n"
         "        train(net, loader, epochs, device)\n"),
        ("under a test of its own", '    model = model.to("cpu")\n', '    if rows is None:\n        model = model.to("cpu")\n'),
    ],
)  # fmt: skip
def test_helpers_that_are_right_or_not_seen(what: str, old: str, new: str) -> None:
    assert old in HELPER
    check_nothing(ChangedAfterWrap, HELPER.replace(old, new))
