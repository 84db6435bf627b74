"""What says that a project averages gradients itself, and what only reads like it."""

from __future__ import annotations

import pytest

from codemods.checkpoints.forward_bypasses_ddp import ForwardBypassesDdp
from ddpfix.testing import check_nothing, check_told, findings_of

_TRAIN = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Steps:
    def __init__(self, net, optimizer):
        self.net = net
        self.wraped = DDP(self.net)
        self.optimizer = optimizer

    def fit(self, loader):
        for x, y in loader:
            loss = (self.net(x) - y).square().mean()
            loss.backward()
            {behind}
            self.optimizer.step()

    def average_gradients(self):
        for p in self.net.parameters():
            torch.distributed.all_reduce(p.grad)


def main():
    torch.distributed.init_process_group("gloo")
    steps = Steps(torch.nn.Linear(2, 1), None)
    steps.fit([])


if __name__ == "__main__":
    main()
"""
_LOOP = """\
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, loss_fn):
    model = DDP(net)
    for x, y in loader:
        loss = loss_fn(model.module.encode(x), y)
        loss.backward()
        optimizer.step()
"""


def test_a_function_that_nobody_calls_averages_nothing() -> None:
    assert findings_of(ForwardBypassesDdp, _TRAIN.format(behind="# self.average_gradients()"))
    check_nothing(ForwardBypassesDdp, _TRAIN.format(behind="self.average_gradients()"))


@pytest.mark.parametrize(
    "text",
    [
        # the gradients of values that were gathered
        "class Gather(Function):\n    @staticmethod\n    def backward(ctx, *grads):\n        all_gradients = torch.stack(grads)\n"
        "        dist.all_reduce(all_gradients)\n        return all_gradients[0]\n",
        "def run(model, gradient_steps, i):\n    return model.no_sync if i % gradient_steps else nullcontext\n",
        "def warn(change):\n    print(f'average degradation of {change}')\n",
        "# sync_gradients(model)\n",
    ],
)
def test_lines_that_only_read_like_it(text: str) -> None:
    assert findings_of(ForwardBypassesDdp, _LOOP, {"other.py": text})


@pytest.mark.parametrize("text", ["# average the gradients\nflat = [1]\n", "def step(p):\n    dist.all_reduce(p.grad)\n"])
def test_lines_that_say_it(text: str) -> None:
    check_nothing(ForwardBypassesDdp, _LOOP, files={"other.py": text})


def test_a_test_for_the_wrapper_runs_it_not() -> None:
    source = f"""{_LOOP.partition("def train")[0]}
class Actor:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def loss(self, x):
        inside = self.model.module if hasattr(self.model, "module") else self.model
        mask = inside.get_node_mask(x)
        return (inside.likelihood(x) * inside.scale.exp() * mask).mean()

    def update(self, batches):
        for x in batches:
            self.loss(x).backward()
            self.optimizer.step()


def main(net, optimizer):
    model = DDP(net)
    Actor(model, optimizer).update([])
"""
    found = check_told(ForwardBypassesDdp, source, reason="let forward of the model make what `likelihood` makes")
    assert found.span.line == 13
