"""DDP501: in a program in which each rank trains a model of its own, rank 0's file is not that of all."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability, Finding
from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import findings_of

PROGRAM = """\
import torch
import torch.distributed as dist
from store import keep, mean_of_weights


def train(rank, world):
    # no DDP here: the ranks meet once in an epoch
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {setup}
    for epoch in range(9):
        for batch in batches(rank):
            loss = net(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            {step}
            optimizer.step()
        mean_of_weights(net)
        keep(net, "last.pt")


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(2,), nprocs=2)
"""
STORE = '''\
"""Not for DDP."""
import torch
import torch.distributed as dist


def mean_of_weights(net):
    for weight in net.parameters():
        dist.all_reduce(weight.data)


def keep(net, path):
    torch.save({"model": net.state_dict()}, path)
'''


def found_in(source: str, store: str) -> list[Finding]:
    """Of the program, where rank 0 is asked for, and of the file that stores, where it is only told."""
    here = findings_of(UnguardedSave, source, {"store.py": store}, path="train.py")
    return [*here, *findings_of(UnguardedSave, store, {"train.py": source}, path="store.py")]


@pytest.mark.parametrize(
    ("setup", "step", "store", "own"),
    [
        ("pass", "pass", STORE, True),
        ("scale = torch.autograd.grad(net(batch), net.weight)", "pass", STORE, True),
        ("net = torch.nn.parallel.DistributedDataParallel(net)", "pass", STORE, False),
        ("net = package.wrapped(net)", "pass", STORE, False),
        ("pass", "[dist.all_reduce(p.grad) for p in net.parameters()]", STORE, False),
        ("pass", "package.average_gradients(net)", STORE, False),
        ("net.weight.register_hook(dist.all_reduce)", "pass", STORE, False),
        ("pass", "pass", STORE.replace("weight.data", "weight.grad"), False),
    ],
)
def test_what_keeps_the_models_equal(setup: str, step: str, store: str, own: bool) -> None:
    (found,) = found_in(PROGRAM.format(setup=setup, step=step), store)
    assert ("keep the models of the ranks equal" in found.reason) is own
    assert (found.applicability is Applicability.DISPLAY) is own


def test_a_program_that_another_file_trains_for() -> None:
    """The loop is not that of the program: who keeps the models equal is not looked for."""
    source = PROGRAM.format(setup="pass", step="pass").replace("loss.backward()", "package.turn(loss)")
    (found,) = found_in(source, STORE)
    assert "keep the models" not in found.reason
