"""A weight that is read past the wrapper, beside a call of the wrapper: its gradient is averaged."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_transformed, findings_of

NETS = {
    "nets.py": """import torch


class Net(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.body = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)
"""
}
TRAIN = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


def main(args, loader, optimizer):
    model = DDP(Net(args))
    for x in loader:
        loss = {forward}
        loss = loss + {penalty}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("penalty", ["({}.body.weight ** 2).sum()", "{}.body.bias.abs().sum()"])
def test_a_penalty_on_a_weight_needs_no_forward(penalty: str) -> None:
    given = {"forward": "model(x).mean()", "penalty": penalty.format("model")}
    after = {**given, "penalty": penalty.format("model.module")}
    check_transformed(AttributeOfWrapper, TRAIN.format(**given), TRAIN.format(**after), files=NETS)


@pytest.mark.parametrize(
    ("forward", "penalty"),
    [
        ("model(x).mean()", "model.body(x).mean()"),  # a forward past the wrapper
        ("x.mean()", "(model.body.weight ** 2).sum()"),  # nothing goes through the wrapper
    ],
)
def test_what_may_lose_gradients_is_not_safe(forward: str, penalty: str) -> None:
    found = findings_of(AttributeOfWrapper, TRAIN.format(forward=forward, penalty=penalty), NETS)
    assert found and all(f.applicability is not Applicability.SAFE for f in found)
    assert all("gradients" in f.reason for f in found)
