"""`set_epoch` for loaders that a program keeps in a list."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, findings_of

MADE = """\
from torch.utils.data import DataLoader, DistributedSampler


class Runner:
    def __init__(self, model, parts, optimizer):
        self.model, self.optimizer = model, optimizer
        self.loaders = []
        for part in parts:
            dealt = DistributedSampler(part)
            self.loaders.append(DataLoader(part, batch_size=8, sampler=dealt))

    def run(self, epochs):
        for epoch in range(epochs):
"""
INDEX = """\
            for i in range(len(self.loaders)):
                for x in self.loaders[i]:
                    self.model(x).mean().backward()
                    self.optimizer.step()
"""
IN_TURN = INDEX.replace("i in range(len(self.loaders))", "loader in self.loaders").replace("self.loaders[i]", "loader")
STAGES = INDEX.replace("            for i in range(len(self.loaders)):", "            for n in range(3):").replace(
    "loaders[i]", "loaders[epoch]"
)


@pytest.mark.parametrize(("lines", "line"), [(INDEX, 13), (IN_TURN, 13), (STAGES, 14)])
def test_loaders_of_which_each_has_a_sampler(lines: str, line: int) -> None:
    found = findings_of(MissingSetEpoch, MADE + lines)
    assert [(f.span.line, f.applicability.value) for f in found] == [(line, "display")]
    assert "each loader of the list has a sampler of its own" in found[0].reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "range(epochs):\n",
            "range(epochs):\n            for one in self.loaders:\n                one.sampler.set_epoch(epoch)\n",
        ),
        ("DistributedSampler(part)", "DistributedSampler(part, shuffle=False)"),  # one order is meant
        ("        for epoch in range(epochs):", "        if epochs:"),  # each loader is gone through once
        ("self.loaders = []", "self.loaders = known(parts)"),  # there may be others in the list
        ("self.loaders.append(", "self.loaders.append(wrap(model, part) if model else "),  # of another kind
    ],
)
def test_lists_that_need_nothing(old: str, new: str) -> None:
    check_nothing(MissingSetEpoch, (MADE + INDEX).replace(old, new))


def test_one_loader_for_each_epoch() -> None:
    lines = INDEX.replace("            for i in range(len(self.loaders)):\n", "            if epoch:\n").replace("[i]", "[epoch]")
    check_nothing(MissingSetEpoch, MADE + lines)
