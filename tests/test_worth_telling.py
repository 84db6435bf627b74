"""A report speaks of a second rank: nothing is told where the other ranks have ended above, or where nobody asks."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

HEAD = """\
import torch
import torch.distributed as dist

def main(model, data, args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        rounds = range(args.epochs)
        loader = torch.utils.data.DataLoader(data)
"""
TAIL = """\
    for epoch in rounds:
        loss = model(data)
        dist.all_reduce(loss)


if __name__ == "__main__":
    main(None, None, None)
"""


@pytest.mark.parametrize("codemod", [CollectiveUnderRankGuard, OneRankDecision])
def test_ranks_without_a_value_do_not_disagree(codemod: type) -> None:
    assert not findings_of(codemod, HEAD + TAIL)


def test_ranks_with_another_value_disagree() -> None:
    assert findings_of(CollectiveUnderRankGuard, HEAD.replace("    if rank", "    rounds = range(2)\n    if rank") + TAIL)


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ("", True),
        ("    model.prepare(loader)\n", False),
        ("    with torch.no_grad():\n        model.prepare(loader)\n", False),
        ("    if args.warm:\n        model.prepare(loader)\n", True),  # not on each way
        ("    run = lambda: model.prepare(loader)\n", True),  # not run there
        ("    try:\n        model.prepare(loader)\n    except UnboundLocalError:\n        pass\n", True),
        ("    if rank == 0:\n        model.prepare(loader)\n", True),
    ],
)
def test_a_place_that_only_rank_zero_comes_to(above: str, told: bool) -> None:
    head = HEAD.replace("    if rank", "    rounds = range(2)\n    if rank")
    assert bool(findings_of(CollectiveUnderRankGuard, head + above + TAIL)) is told


HOOKS = """\
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def test_step(self, batch, batch_idx):
        for key, part in batch.items():
            self.log(f"loss_{key}", self(part).mean(), on_epoch=True)


if __name__ == "__main__":
    trainer = pl.Trainer(devices=4)
    trainer.fit(Net())
"""


def test_a_hook_of_tests_that_nothing_asks_for() -> None:
    assert not [f for f in findings_of(UnsyncedMetric, HOOKS) if f.fix is None]
    asked = findings_of(UnsyncedMetric, HOOKS + "    trainer.test(Net())\n")
    assert [f for f in asked if f.fix is None]
