from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

TRAIN = """
import torch
import torch.distributed as dist
from stops import Enough, check
from torch.nn.parallel import DistributedDataParallel


class Job:
    def __init__(self, net, batches, last):
        dist.init_process_group("nccl")
        self.model = DistributedDataParallel(net)
        self.batches, self.last, self.step = batches, last, 0

    def run(self):
        for epoch in range(10):
            try:
                for batch in self.batches:
                    check(self.step, self.last, batch)
                    loss = self.model(batch).mean()
                    loss.backward()
                    self.step += 1
            except {caught}:
                print("enough")
                break
        {more}
"""
STOPS = """
class Enough(Exception):
    pass


class Other(Exception):
    pass


def check(step, last, batch):
    {body}
"""


def is_told(body: str, caught: str = "Enough", more: str = "dist.barrier()", files: dict[str, str] | None = None) -> bool:
    texts = {"stops.py": STOPS.replace("{body}", body.replace("\n", "\n    ")), **(files or {})}
    return bool(findings_of(OneRankDecision, TRAIN.format(caught=caught, more=more), texts, path="train.py"))


@pytest.mark.parametrize(
    "body",
    [
        "if step > last:\n    raise Enough",
        "if step > last:\n    raise Enough('all steps are done')",
        "if step < last:\n    return\nif last > 0:\n    raise Enough()",
    ],
)
def test_an_exception_behind_the_last_step(body: str) -> None:
    assert not is_told(body)
    assert is_told(body, "Exception")  # others come here as well
    assert is_told(body, "(Enough, RuntimeError)")


@pytest.mark.parametrize(
    "body",
    [
        "if batch.isnan().any():\n    raise Enough",
        "if step > last:\n    if batch.sum() == 0:\n        raise Enough",
        "if batch.sum() > 0:\n    return\nif last > 0:\n    raise Enough",
        "try:\n    batch.cuda()\nexcept RuntimeError:\n    if last > 0:\n        raise Enough",
        "raise Enough",
        "if step > last:\n    raise Enough\nif batch.isnan().any():\n    raise Enough",
        "if step > last:\n    stop(Enough)",
        "if step > last:\n    raise Other",  # nobody is seen to raise it
    ],
)
def test_an_exception_that_may_be_of_one_rank(body: str) -> None:
    assert is_told(body)


def test_a_raise_in_another_file() -> None:
    common = "if step > last:\n    raise Enough"
    own = "import stops\n\n\ndef look(loss):\n    if loss.isnan():\n        raise stops.Enough\n"
    assert is_told(common, files={"look.py": own})
    renamed = own.replace("import stops", "from stops import Enough as E").replace("stops.Enough", "E")
    assert is_told(common, files={"look.py": renamed})
    assert is_told(common, files={"look.py": "from stops import Enough\n\n\nclass Bad(Enough):\n    pass\n"})
    assert not is_told(common, files={"look.py": own.replace("loss.isnan()", "loss.step > 3").replace("loss", "state")})
