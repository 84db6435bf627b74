"""DDP107: losses that are divided by the rows of all ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.scaled_loss import ScaledLoss
from ddpfix.testing import check_nothing, check_told

HEAD = """\
import torch
import torch.distributed as dist
import torch.nn.functional as F
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel as DDP


"""
BY_HAND = """\
def train(net, loader, optimizer, world_size):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        {before}
        loss = F.cross_entropy(model(x), y, reduction="sum"){by}
        {after}
        loss.backward()
        optimizer.step()
"""
PREPARED = """\
accelerator = Accelerator()


def train(model, loader, optimizer, criterion):
    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)
    for x, y in loader:
        rows = len(x) * accelerator.num_processes
        loss = criterion(model(x), y) / rows
        accelerator.backward(loss)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "by"),
    [
        ("pass", " / (len(x) * world_size)"),
        ("pass", " / (dist.get_world_size() * x.size(0))"),
        ("pass", " / (y.numel() * world_size)"),
        ("pass", "\n        loss /= len(x) * world_size"),
        ("rows = x.shape[0] * dist.get_world_size()", " / rows"),
    ],
)
def test_the_rows_of_all_ranks(before: str, by: str) -> None:
    check_told(ScaledLoss, HEAD + BY_HAND.format(before=before, by=by, after="pass"), reason="own rows")


def test_under_accelerate() -> None:
    check_told(ScaledLoss, HEAD + PREPARED, reason="own rows")


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        ("pass", " / len(x)", "pass"),
        ("pass", " / (len(x) * 4)", "pass"),
        ("pass", " / (len(x) * world_size) * world_size", "pass"),
        ("rows = len(x)", " / rows", "pass"),
        ("rows = len(x) * world_size\n        rows = rows / world_size", " / rows", "pass"),
        ("pass", " / len(x)", "shown = loss.detach() / (len(x) * world_size)"),
    ],
)
def test_other_divisors(before: str, by: str, after: str) -> None:
    check_nothing(ScaledLoss, HEAD + BY_HAND.format(before=before, by=by, after=after))


def test_where_the_rows_are_gathered() -> None:
    """With a gather that hands gradients back, the sum of the ranks' losses over all rows is divided by all rows."""
    text = HEAD.replace("import torch\n", "import torch\nfrom torch.distributed.nn import all_gather\n") + BY_HAND.format(
        before="every = torch.cat(all_gather(model(x)))", by=" / (len(x) * world_size)", after="pass"
    )
    check_nothing(ScaledLoss, text)


def test_an_evaluation() -> None:
    text = HEAD + BY_HAND.format(before="pass", by=" / (len(x) * world_size)", after="pass")
    check_nothing(ScaledLoss, text.replace("loss.backward()", "print(loss)"))
