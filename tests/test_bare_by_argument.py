from __future__ import annotations

import pytest

from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

METHOD = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Job:
    def start(self):
        dist.init_process_group("nccl")

    def build(self, parallel=True):
        net = torch.nn.Linear(4, 4).cuda()
        if {test}:
            net = DistributedDataParallel(net)
        {more}
        return net

    def loss_with(self, net, batch):
        return net(batch).mean()

    def probe(self, batches, other):
        net = self.build({given})
        size = 1
        while True:
            try:
                {loss}
                loss.backward()
                size *= 2
            except RuntimeError:
                net = self.build({again})
                break
"""
SUM = "loss = 0.0\n                for part in net(batches(size)):\n                    loss += part.sum()"


def is_told(test: str = "parallel", given: str = "parallel=False", again: str = "", loss: str = SUM, more: str = "pass") -> bool:
    source = METHOD.format(test=test, given=given, again=again or given, loss=loss, more=more)
    return bool(findings_of(OneRankDecision, source))


@pytest.mark.parametrize(
    "loss",
    [
        SUM,
        "loss = net(batches(size)).mean() * 0.0",
        "loss = self.loss_with(net, batches(size))\n                loss = loss * 0.0",
        "out = net(batches(size))\n                loss = torch.mean(out)",
    ],
)
def test_a_model_that_was_made_without_the_wrapper(loss: str) -> None:
    assert not is_told(loss=loss)
    assert is_told(loss=loss, given="")
    assert is_told(loss=loss, given="parallel=True")
    assert is_told(loss=loss, again="parallel=True")  # one of its values is wrapped


@pytest.mark.parametrize(
    ("test", "given", "told"),
    [
        ("parallel", "False", False),
        ("not parallel", "True", False),
        ("parallel is True", "parallel=False", False),
        ("not parallel", "False", True),
        ("parallel or dist.is_initialized()", "False", True),
        ("parallel", "parallel=batches.wrapped", True),
    ],
)
def test_the_argument_decides(test: str, given: str, told: bool) -> None:
    assert is_told(test, given) is told


@pytest.mark.parametrize(
    "loss",
    [
        "loss = (net(batches(size)) - other(batches(size))).mean()",  # a parameter that may be wrapped
        "loss = (net(batches(size)) - self.net(batches(size))).mean()",
        "loss = net(batches(size)).mean()\n                loss = loss + other.encode(batches(size))",
        "self.loss = net(batches(size)).mean()\n                loss = self.loss_with(other, size)",
    ],
)
def test_a_loss_of_another_model_as_well(loss: str) -> None:
    assert is_told(loss=loss)


def test_a_second_wrap_that_the_argument_does_not_switch_off() -> None:
    assert is_told(more="net = DistributedDataParallel(net) if dist.is_initialized() else net")


IN_ANOTHER_FILE = """
import torch
import torch.distributed as dist
from parts import build


def probe(batches):
    dist.init_process_group("nccl")
    net = build(WRAP).train()
    for batch in batches:
        try:
            net(batch).sum().backward()
        except RuntimeError:
            continue
"""
PARTS = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(wrap=True):
    net = torch.nn.Linear(4, 4)
    if not wrap:
        return net.cuda()
    else:
        return DDP(net.cuda())
"""


@pytest.mark.parametrize(("wrap", "told"), [("False", False), ("wrap=False", False), ("True", True), ("", True)])
def test_a_function_of_another_file(wrap: str, told: bool) -> None:
    found = findings_of(OneRankDecision, IN_ANOTHER_FILE.replace("WRAP", wrap), {"parts.py": PARTS}, path="probe.py")
    assert bool(found) is told
