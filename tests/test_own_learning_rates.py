"""DDP305 where each rank changes the learning rate by a number of its own."""

from __future__ import annotations

import textwrap

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told

RULE = OneRankDecision
HEAD = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(net, data, limit, opt):
    dist.init_process_group("nccl")
    model = DDP(net)
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    total = 0.0
    for step, x in enumerate(loader):
        loss = model(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
"""
HALVES = "    for group in opt.param_groups:\n        group['lr'] *= 0.5"


def program(inner: str, depth: int = 8) -> str:
    return HEAD + textwrap.indent(inner, " " * depth) + "\n"


@pytest.mark.parametrize(
    ("inner", "depth"),
    [
        ("if loss.item() < limit:\n    opt.param_groups[0]['lr'] = opt.param_groups[0]['lr'] / 2\n    limit = limit / 2", 8),
        (f"if loss.item() < limit:\n{HALVES}", 8),
        (f"if total / len(loader) > limit:\n{HALVES}", 4),
        ("if torch.isnan(loss):\n    opt.param_groups[0]['lr'] *= 0.1", 8),
        (f"small = loss.item() < limit\nif small and step > 100:\n{HALVES}", 8),
    ],
)
def test_a_rate_by_the_own_loss(inner: str, depth: int) -> None:
    found = check_told(RULE, program(inner, depth), reason="reduce the deciding number over the ranks first")
    assert "their weights part" in found.message


@pytest.mark.parametrize(
    "inner",
    [
        f"dist.all_reduce(loss)\nif loss.item() < limit:\n{HALVES}",
        f"if step % 100 == 0:\n{HALVES}",
        "if loss.item() < limit:\n    print(opt.param_groups[0]['lr'])",
        "if loss.item() < limit:\n    opt.param_groups[0]['name'] = 'low'",
        f"if len(loader) > 1000:\n{HALVES}",
    ],
)
def test_what_all_ranks_do_alike_or_only_show(inner: str) -> None:
    check_nothing(RULE, program(inner))


def test_an_optimizer_of_the_own_batch() -> None:
    own = "    total = 0.0\n    delta = torch.zeros(8, requires_grad=True)\n    opt = torch.optim.Adam([delta])\n"
    check_nothing(RULE, program(f"if loss.item() < limit:\n{HALVES}").replace("    total = 0.0\n", own))
