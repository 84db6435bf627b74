"""DDP505: layers that are put into a model behind the DDP wrap."""

from __future__ import annotations

import pytest

from codemods.checkpoints.changed_after_wrap import ChangedAfterWrap
from ddpfix.testing import check_nothing, check_told, findings_of

_NETS = """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)


class Scale(nn.Module):
    def forward(self, x):
        return x * 2


"""
_TRAIN = """\
def main(net, loader, many):
    {wrap}
    {put}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
"""


def train(put: str, wrap: str = "model = DDP(net)") -> str:
    return _NETS + _TRAIN.format(wrap=wrap, put=put)


@pytest.mark.parametrize(
    "put",
    [
        "model.module.head = nn.Linear(3, 2)",
        "model.module.head = Head().cuda()",
        "model.module.body.head = nn.Sequential(nn.ReLU(), nn.Linear(3, 2)).to('cuda')",
        "new = Head()\n    if isinstance(model, DDP):\n        model.module.head = new\n    else:\n        model.head = new",
    ],
)
def test_a_layer_with_parameters(put: str) -> None:
    check_told(ChangedAfterWrap, train(put), reason="put the layer in front of the wrap")


def test_a_wrap_under_a_test() -> None:
    wrap = "model = net\n    if many:\n        model = DDP(model)"
    assert findings_of(ChangedAfterWrap, train("model.module.head = Head()", wrap))


@pytest.mark.parametrize(
    ("put", "wrap"),
    [
        ("model.module.scale = Scale()", "model = DDP(net)"),  # it has no parameters
        ("model.module.head = nn.Identity()", "model = DDP(net)"),
        ("model.module.epoch = 3", "model = DDP(net)"),
        ("model.module.head = many.head", "model = DDP(net)"),  # a part that is put back
        ("net.head = nn.Linear(3, 2)\n    model = DDP(net)", "model = net"),
        ("model.module.head = nn.Linear(3, 2)\n    model = DDP(model.module)", "model = DDP(net)"),  # wrapped again
        ("model.module.head = nn.Linear(3, 2)", "model = nn.DataParallel(net)"),
    ],
)
def test_what_the_wrapper_need_not_know(put: str, wrap: str) -> None:
    check_nothing(ChangedAfterWrap, train(put, wrap))


def test_a_layer_that_no_optimizer_below_trains() -> None:
    source = train("model.module.head = nn.Linear(3, 2)")
    check_nothing(ChangedAfterWrap, source.replace("SGD(model.parameters()", "SGD(net.body.parameters()"))
    check_nothing(ChangedAfterWrap, source.partition("        model(x)")[0] + "        pass\n")


def test_a_new_layer_that_is_frozen() -> None:
    put = "model.module.head = nn.Linear(3, 2)\n    model.module.head.requires_grad_(False)"
    (found,) = findings_of(ChangedAfterWrap, train(put))
    assert "are frozen behind the DDP wrap" in found.message  # DDP waits for the layer that stood there
