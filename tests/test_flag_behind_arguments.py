"""DDP002: a module behind an argument of forward that no training call hands over."""

from __future__ import annotations

import pytest

from codemods.flags.missing_find_unused_parameters import MissingFindUnusedParameters
from ddpfix.testing import check_nothing, check_transformed

SOURCE = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.aux = nn.Linear(8, 1)

    def forward(self, x, with_aux=False):
        h = self.trunk(x)
        if with_aux:
            h = h + self.aux(h)
        return h

def train(loader):
    model = DDP(Net())
    for x in loader:
        model(x).mean().backward()
"""
ON = SOURCE.replace("DDP(Net())", "DDP(Net(), find_unused_parameters=True)")


def test_an_argument_that_nobody_hands_over() -> None:
    check_transformed(MissingFindUnusedParameters, SOURCE, ON, unsafe=True)


def test_its_default_handed_over() -> None:
    before, after = (text.replace("model(x)", "model(x, with_aux=False)") for text in (SOURCE, ON))
    check_transformed(MissingFindUnusedParameters, before, after, unsafe=True)


def test_a_condition_that_is_none() -> None:
    pairs = (("with_aux=False", "cond=None"), ("if with_aux", "if cond is not None"), ("self.aux(h)", "self.aux(cond)"))
    before, after = SOURCE, ON
    for old, new in pairs:
        before, after = before.replace(old, new), after.replace(old, new)
    check_transformed(MissingFindUnusedParameters, before, after, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace("model(x)", "model(x, True)"),
        SOURCE.replace("model(x)", "model(x, with_aux=True)"),
        SOURCE.replace("model(x)", "model(x, with_aux=len(loader) > 2)"),
        SOURCE.replace("model(x)", "model(**x)"),
        SOURCE.replace("with_aux=False)", "with_aux=False, **others)"),
        SOURCE.replace("with_aux=False", "with_aux"),
        SOURCE.replace(".mean().backward()", ".mean()"),
        SOURCE + "\ndef later(model, x):\n    return model(x, with_aux=True)\n",
    ],
)
def test_calls_that_may_ask_for_it(source: str) -> None:
    check_nothing(MissingFindUnusedParameters, source)


def test_a_call_in_another_file() -> None:
    files = {"more.py": "def f(model, x):\n    model(x, with_aux=1).backward()\n"}
    check_nothing(MissingFindUnusedParameters, SOURCE, files=files)
