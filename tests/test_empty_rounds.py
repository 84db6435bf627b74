"""DDP305 and DDP411 of a rank that leaves above a loop because it has nothing to go through."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

STEP = (
    "import torch\nimport lightning.pytorch as pl\n\n\nclass Net(pl.LightningModule):\n"
    "    def training_step(self, batch, batch_idx):\n        loss = self(batch['x']).mean()\n        self.count(batch)\n"
    "        return loss\n\n"
    "    def count(self, batch):\n        names = []\n        for text in list(batch['name'].text):\n"
    "            names.extend([x for x in text.split('$') if x])\n        if {test}:\n            return\n        seen = {{}}\n"
    "        for name in names:\n            seen[name] = seen.get(name, 0) + 1\n{rest}"
)
LOG = "self.log({key}, torch.tensor({n}, device=self.device), on_step=True, on_epoch=False, sync_dist=True, reduce_fx='sum')\n"
LOOP = "        for name, n in seen.items():\n            " + LOG.format(key="f'seen/{name}'", n="n")


@pytest.mark.parametrize("test", ["len(names) == 0", "not names", "len(names) < 1"])
def test_the_loop_is_told_alone(test: str) -> None:
    source = STEP.format(test=test, rest=LOOP)
    assert not findings_of(OneRankDecision, source, path="net.py")
    assert [f.span.line for f in findings_of(UnevenSteps, source, path="net.py")] == [20]


@pytest.mark.parametrize(("test", "rest"), [
    ("len(names) == 0", " " * 8 + LOG.format(key="'seen'", n="len(seen)")),  # no loop: the exit decides alone
    ("len(names) > 3", LOOP),  # a rank with names leaves
    ("batch['x'].mean() < 0", LOOP),
])  # fmt: skip
def test_the_exit_is_told(test: str, rest: str) -> None:
    assert findings_of(OneRankDecision, STEP.format(test=test, rest=rest), path="net.py")
