"""Masks that a model draws for each sample in its `forward`, under a seed that all ranks have."""

from __future__ import annotations

import pytest

from codemods.data_loading.same_random_numbers import SameRandomNumbers
from ddpfix.testing import check_nothing, findings_of

NET = """\
import torch
from torch import nn


class Painter(nn.Module):
    def forward(self, x):
        return self.decode(self.encode(x))

    def encode(self, x):
        kept = self.hide(x)
        return kept

    def hide(self, x):
        {size}
        {draw}
        {order}
        return torch.gather(x, 1, order[:, :9])
"""
STEPS = """\
def one_epoch(model, loader):
    for x in loader:
        model(x).mean().backward()
"""
MAIN = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from net import Painter
from steps import one_epoch


def main(args):
    dist.init_process_group("nccl")
    {seed}
    model = DistributedDataParallel(Painter())
    one_epoch(model, args.loader)
"""
SIZE = "B, L = x.shape"
DRAW = "score = torch.rand(B, L, device=x.device)"
ORDER = "order = torch.argsort(score, dim=1)"
SEED = "torch.manual_seed(args.seed)"


def files(size: str = SIZE, draw: str = DRAW, order: str = ORDER) -> dict[str, str]:
    return {"net.py": NET.format(size=size, draw=draw, order=order), "steps.py": STEPS}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"order": "order = score.argsort(dim=1)"},
        {"size": "B = x.size(0)", "draw": "score = torch.rand(B, 16)"},
        {"size": "rows = len(x)", "draw": "score = torch.rand(rows, 16)"},
        {"draw": "pass", "order": "order = torch.rand(B, 16).argsort(dim=1)"},
        {"draw": "pass", "order": "order = torch.argsort(torch.rand(x.shape[:2]), dim=-1)"},
        {"draw": "pass", "order": "order = torch.argsort(torch.rand_like(x), dim=1)"},
    ],
)
def test_masks_of_the_samples(parts: dict[str, str]) -> None:
    found = findings_of(SameRandomNumbers, MAIN.format(seed=SEED), files(**parts))
    assert [f.span.line for f in found] == [11]
    assert found[0].evidence[0].path == "net.py"


@pytest.mark.parametrize(
    "parts",
    [
        {"order": "order = (score > 0.5).long()"},  # a dropout of its own
        {"size": "L, B = x.shape", "draw": "score = torch.rand(B, 9)"},  # one order for all samples
        {"size": "B = self.parts"},
        {"size": "B = len(x)\n        B = 3"},
        {"draw": "score = x.mean(-1)"},
        {"order": "order = args.argsort"},
    ],
)
def test_what_is_no_mask_of_each_sample(parts: dict[str, str]) -> None:
    check_nothing(SameRandomNumbers, MAIN.format(seed=SEED), files=files(**parts))


@pytest.mark.parametrize(
    "seed",
    ["torch.manual_seed(args.seed + dist.get_rank())", "args.start()", "if dist.get_rank() == 0:\n        torch.manual_seed(3)"],
)
def test_other_seeds(seed: str) -> None:
    check_nothing(SameRandomNumbers, MAIN.format(seed=seed), files=files())


def test_a_script_that_makes_no_steps() -> None:
    alone = MAIN.format(seed=SEED).replace("from steps import one_epoch\n", "").replace("one_epoch(model", "args.show(model")
    check_nothing(SameRandomNumbers, alone, files=files())
