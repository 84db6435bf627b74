"""DDP301: a hook of rank 0 that calls a helper, which logs with `sync_dist=True` under a test."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, check_told

_CALLBACK = """\
import lightning as L
from lightning.pytorch.utilities import rank_zero_only


class Scores(L.Callback):
    {guard}
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.show(batch, pl_module)

    def show(self, batch, pl_module):
        for name, score in self.scores.items():
            if {test}:
                pl_module.log(name, score(batch), sync_dist={sync})
"""


def callback(test: str, *, guard: str = "@rank_zero_only", sync: str = "True") -> str:
    return _CALLBACK.format(test=test, guard=guard, sync=sync)


@pytest.mark.parametrize("test", ["name in self.shown", "len(batch) > 3"])
def test_a_helper_that_logs_under_a_test(test: str) -> None:
    found = check_told(CollectiveUnderRankGuard, callback(test), reason="waits for every rank")
    assert found.span.line == 8 and "pl_module.log(sync_dist=True) where line 12 lets it" in found.message


@pytest.mark.parametrize(
    "source",
    [
        callback("name in self.shown", guard="# every rank"),
        callback("name in self.shown", sync="False"),
        callback("name in self.shown", sync="self.shared"),  # it may be False
        callback("not self.many_processes"),  # one process only, perhaps
        callback("len(trainer.device_ids) < 2 and self.shown"),
    ],
)
def test_helpers_that_wait_for_nobody(source: str) -> None:
    check_nothing(CollectiveUnderRankGuard, source)
