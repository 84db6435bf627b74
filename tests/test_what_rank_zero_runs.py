"""What rank 0 does alone in a program of several processes: an error there ends it."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import findings_of

SOURCE = """
from accelerate import Accelerator
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.width = 2

    def forward(self, x):
        return self.a(x)


def sample(net, batches):
    print("sampling")
    return [net(x[:, : net.width]) for x in batches]


def main(batches):
    accelerator = Accelerator()
    net = accelerator.prepare(Net())
    for x in batches:
        accelerator.backward(net(x).sum())
        if {test}:
            sample(net, batches)


if __name__ == "__main__":
    main([])
"""
SEVERAL = "accelerate launch --multi_gpu --num_processes 2 train.py\n"
ZERO = "accelerator.is_main_process"


def told(run: str, test: str = ZERO) -> int:
    files = {"run.sh": run, "other.py": "import torch.distributed as dist\n\ndist.init_process_group('nccl')\n"}
    return len(findings_of(AttributeOfWrapper, SOURCE.format(test=test), files, path="train.py"))


@pytest.mark.parametrize("test", [ZERO, "True"])
def test_an_error_is_one_of_the_program(test: str) -> None:
    assert told(SEVERAL, test) == 1


@pytest.mark.parametrize("before", ["", "python train.py\n"])
def test_an_error_of_a_program_that_nothing_starts_as_several(before: str) -> None:
    assert told(f"{before}torchrun --nproc_per_node=8 other.py\n") == 0
