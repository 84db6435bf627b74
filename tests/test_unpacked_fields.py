"""Models that a class takes out of `accelerator.prepare` together with the rest."""

from __future__ import annotations

import pytest

from codemods.sync.rank_local_training_state import RankLocalTrainingState
from ddpfix.testing import check_nothing, findings_of

TASKS = """\
from accelerate import Accelerator


class Tasks:
    def __init__(self, net, optimizer, loader):
        self.accelerator = Accelerator()
        self.net, self.best = net, None
        self.net, self.optimizer, self.loader = self.accelerator.prepare(net, optimizer, loader)

    def one(self):
        for batch in self.loader:
            self.accelerator.backward(self.net(batch))
            self.optimizer.step()
        if self.accelerator.is_main_process:
            self.net.module.load_state_dict(self.best)

    def all(self, names):
        for name in names:
            self.one()


def main(net, optimizer, loader, names):
    Tasks(net, optimizer, loader).all(names)
"""


def test_weights_that_rank_0_loads_between_two_trainings() -> None:
    (found,) = findings_of(RankLocalTrainingState, TASKS)
    assert "rank 0 alone restores the weights (`self.net.module`)" in found.message and found.span.line == 15


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("one training", "        for name in names:\n            self.one()", "        self.one()"),
        ("every rank loads", "if self.accelerator.is_main_process:", "if len(self.loader) > 1:"),
        ("a model for each training", "    def one(self):\n",
         "    def one(self):\n        self.net, _ = self.accelerator.prepare(*self.new())\n"),
        ("an average is loaded", "self.net.module.load", "self.ema.module.load"),
        ("no prepare", "self.accelerator.prepare(net, optimizer, loader)", "net, optimizer, loader"),
        ("it is bound again below", "(net, optimizer, loader)\n\n", "(net, optimizer, loader)\n        self.net = net\n\n"),
    ],
)  # fmt: skip
def test_what_is_right_or_not_seen(what: str, old: str, new: str) -> None:
    assert old in TASKS
    check_nothing(RankLocalTrainingState, TASKS.replace(old, new))


def test_what_stands_in_front_of_prepare() -> None:
    early = TASKS.replace("        self.net, self.optimizer", "        self.begin()\n        self.net, self.optimizer")
    early = early.replace("    def one(self):", "    def begin(self):\n        self.one()\n\n    def one(self):")
    check_nothing(RankLocalTrainingState, early)
