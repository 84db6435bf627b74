"""Fields that hold the module inside a wrapper in a run of several processes, and the model itself in any other."""

from __future__ import annotations

import pytest

from codemods.checkpoints.forward_bypasses_ddp import ForwardBypassesDdp
from ddpfix.testing import check_nothing, check_told, findings_of

IF = "if run.distributed:\n            self.bare_net = self.net.module\n        else:\n            self.bare_net = self.net"
BASE = """from torch import nn


class Base:
    def __init__(self, run, net, optimizer):
        self.net = net
        self.optimizer = optimizer
        {taken}
"""
STEP = """from base import Base


class Steps(Base):
    def step(self, x):
        loss = {loss}
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
BUILD = """from torch.nn.parallel import DistributedDataParallel


def build(run, net):
    if run.distributed:
        net = DistributedDataParallel(net)
    return net
"""
CALLED = "self.bare_net(x).mean()"


def files(taken: str = IF, build: str = BUILD) -> dict[str, str]:
    return {"base.py": BASE.format(taken=taken), "build.py": build}


def step(loss: str = CALLED) -> str:
    return STEP.format(loss=loss)


@pytest.mark.parametrize(
    "taken",
    [
        IF,
        "self.bare_net = self.net.module if run.distributed else self.net",
        "self.bare_net = self.net.module if isinstance(self.net, nn.parallel.DistributedDataParallel) else self.net",
        "self.bare_net = self.net.module if type(self.net) is torch.nn.parallel.DistributedDataParallel else self.net",
    ],
)
def test_the_wrapper_is_called_instead_whoever_makes_the_object(taken: str) -> None:
    (found,) = findings_of(ForwardBypassesDdp, step(), files(taken))
    assert "`self.bare_net(...)` goes past the DDP wrapper" in found.message
    assert "self.net" in str(found.edits)


def test_of_several_methods_the_first_is_told() -> None:
    source = step("(self.bare_net.encode(x) + self.bare_net.decode(x)).mean()")
    found = check_told(ForwardBypassesDdp, source, files=files(), reason="the wrapper runs `forward` alone")
    assert "self.bare_net.encode" in found.message
    assert len(findings_of(ForwardBypassesDdp, source, files())) == 1


def test_a_name_that_may_be_another_network_is_not_changed() -> None:
    named = "        net = self.copy if x.flag else self.bare_net\n        loss"
    source = step("net(x).mean()").replace("        loss", named, 1)
    check_told(ForwardBypassesDdp, source, files=files(), reason="call the wrapper instead")


@pytest.mark.parametrize(
    "taken",
    [
        "self.bare_net = self.net",
        "self.bare_net = self.net.module if run.nested else self.net",
        "self.bare_net = self.net.module if run.distributed else self.other",
        "self.bare_net = self.net.head if run.distributed else self.net",
        IF + "\n        self.bare_net = run.made",
        IF + "\n        self.net = run.made",
    ],
)
def test_nothing_where_no_such_test_tells(taken: str) -> None:
    check_nothing(ForwardBypassesDdp, step(), files=files(taken))


def test_nothing_where_the_wrapper_is_run_or_another_kind_of_it_is_made() -> None:
    check_nothing(ForwardBypassesDdp, step("(self.net(x) + self.bare_net.size(x)).mean()"), files=files())
    parallel = BUILD + "\n\ndef spread(net):\n    return torch.nn.DataParallel(net)\n"
    check_nothing(ForwardBypassesDdp, step(), files=files(build=parallel))
    other = BUILD.replace("DistributedDataParallel(net)", "DistributedDataParallel(run.critic)").replace(" net = ", " critic = ")
    check_nothing(ForwardBypassesDdp, step(), files=files(build=other))
