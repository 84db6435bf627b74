"""DDP504 where a line behind the wrap drops the wrapper, and where rank 0 may have left above in a mode of its own."""

from __future__ import annotations

import pytest

from codemods.checkpoints.forward_bypasses_ddp import ForwardBypassesDdp
from ddpfix.testing import check_nothing, check_told

_BASE = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Painter:
    def __init__(self, net, gpu):
        self.net = net.to(gpu)
        if torch.cuda.device_count() > 1:
            self.net = DDP(self.net, device_ids=[gpu])
            {then}
"""
_HEIR = """
from painter import Painter


class Fit(Painter):
    def step(self, x):
        loss = {call}.mean()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize("call", ["self.net(x)", "self.net.loss(x)"])
def test_the_wrapper_of_a_base_class_is_dropped_by_the_next_line(call: str) -> None:
    files = {"fit.py": _HEIR.format(call=call)}
    base = _BASE.format(then="self.net = self.net.module")
    found = check_told(ForwardBypassesDdp, base, reason="keep the wrapper", files=files, path="painter.py")
    assert "fit.py:8 averages no gradients" in found.message


@pytest.mark.parametrize(
    ("then", "call"),
    [
        ("self.bare = self.net.module", "self.net(x)"),  # the wrapper stays where it is
        ("self.keep()\n            self.net = self.net.module", "self.net(x)"),  # the method may keep it elsewhere
        ("self.net = self.net.module", "self.critic(x)"),  # the loss is made of another model
        ("self.net = self.net.module\n            self.net = DDP(self.net)", "self.net(x)"),  # wrapped again
        ("self.net = self.critic.module", "self.net(x)"),
    ],
)
def test_a_wrapper_that_may_still_be_run(then: str, call: str) -> None:
    check_nothing(ForwardBypassesDdp, _BASE.format(then=then), files={"fit.py": _HEIR.format(call=call)}, path="painter.py")


def test_a_dropped_wrapper_that_no_class_trains() -> None:
    heir = _HEIR.format(call="self.net(x)").replace("Fit(Painter)", "Fit")
    check_nothing(ForwardBypassesDdp, _BASE.format(then="self.net = self.net.module"), files={"fit.py": heir}, path="painter.py")


_MODE = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def fit(net, loader, optimizer, args, rank):
    model = DDP(net)
    if {test}:
        validate(model)
        return
    for x in loader:
        loss = model.module.training_step(x)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("test", ["args.every == 0 and rank == 0", "rank == 0 and args.dry_run"])
def test_rank_zero_leaves_above_in_one_mode_only(test: str) -> None:
    check_told(ForwardBypassesDdp, _MODE.format(test=test), reason="the wrapper runs `forward` alone")


@pytest.mark.parametrize("test", ["rank != 0", "rank == 0", "rank == 0 and args.rank == 0", "rank != 0 or args.dry_run"])
def test_only_some_ranks_train(test: str) -> None:
    check_nothing(ForwardBypassesDdp, _MODE.format(test=test))
