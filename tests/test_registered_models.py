"""Models that timm makes by the name of their function: who calls `create_model` runs it."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.store.project import Project

MODELS = """\
from timm.models import register_model
from torch import nn


class Encoder(nn.Module):
    def forward(self, x):
        print(x.shape)
        return x


@register_model
def encoder_small(**kwargs):
    return Encoder(**kwargs)
"""
TRAIN = """\
import argparse

import torch
import torch.distributed as dist
from timm.models import create_model

import models


def main(args):
    dist.init_process_group("nccl")
    net = torch.nn.parallel.DistributedDataParallel(create_model(args.model))
    net(torch.zeros(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    main(parser.parse_args())
"""
RUN = "torchrun --nproc_per_node 4 train.py --model encoder_small\n"


def comes(files: dict[str, str]) -> bool:
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("models.py")
    assert module is not None
    return is_of_several(project, module, module.calls_named("Encoder")[0])


def test_a_name_that_a_command_gives() -> None:
    assert comes({"models.py": MODELS, "train.py": TRAIN, "run.sh": RUN})


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("run.sh", "encoder_small", "encoder_large"),  # nobody chooses it
        ("train.py", "import models\n", ""),  # it is not registered in this program
        ("train.py", "args.model)", "'encoder_large')"),
        ("train.py", "from timm.models import", "from nets import"),
        ("models.py", "from timm.models import", "from nets import"),
        ("models.py", "@register_model\n", ""),
    ],
)
def test_what_nobody_is_seen_to_make(path: str, old: str, new: str) -> None:
    files = {"models.py": MODELS, "train.py": TRAIN, "run.sh": RUN}
    files[path] = files[path].replace(old, new)
    assert not comes(files)
