"""DDP002 and a flag that the test decides under which the model is made."""

from __future__ import annotations

import pytest

from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters
from ddpfix.testing import check_nothing, check_told

SOURCE = """
import random
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 8)

    def forward(self, x):
        h = self.trunk(x)
        if random.random() < 0.5:
            h = h + self.aux(h)
        return h

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)

    def forward(self, x):
        return self.trunk(x)

def train(args, loader):
    if {test}:
        model = Net()
    else:
        model = Plain()
    flag = {flag}
    model = DDP(model, find_unused_parameters=flag)
    for x in loader:
        model(x).mean().backward()
"""


@pytest.mark.parametrize(
    ("test", "flag"),
    [
        ("args.gated", "args.moe or args.gated"),
        ("args.gated", "bool(args.moe) or bool(args.gated)"),
        ("args.gated and args.deep", "args.moe or args.gated"),
    ],
)
def test_the_model_is_made_where_the_flag_is_on(test: str, flag: str) -> None:
    check_nothing(MissingFindUnusedParameters, SOURCE.format(test=test, flag=flag))


@pytest.mark.parametrize(
    ("test", "flag"),
    [("args.gated", "args.moe or args.wide"),
     ("args.gated", "args.moe and args.gated"), ("not args.gated", "args.moe or args.gated")],
)
def test_the_model_is_made_elsewhere_too(test: str, flag: str) -> None:
    check_told(MissingFindUnusedParameters, SOURCE.format(test=test, flag=flag), reason="has to come to True")
