"""A field that a base class sets by the rank is a test for it in the classes below, in whatever file; so is `args.gpu`."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_tests import split_of
from codemods.store.project import Project

TRAIN = """
import torch
import torch.distributed as dist
{imports}

class Trainer(Base):
    def train(self):
        if self.verbose:
            torch.save(self.model, "last.pt")


def main_worker(gpu, args):
    args.gpu = gpu
    dist.init_process_group("nccl")
    Trainer(args).train()


if __name__ == "__main__":
    main_worker(args.local_rank, args)
"""
BASE = """
import torch.distributed as dist

class Base:
    def __init__(self, args):
        self.args = args
{fields}
"""


def ranks_of(fields: str, *, train: str = TRAIN, apart: bool = True) -> Ranks | None:
    """For which ranks `self.verbose` of the heir is true."""
    base = BASE.format(fields=textwrap.indent(textwrap.dedent(fields), " " * 8))
    texts = {"base.py": base, "train.py": train.format(imports="from base import Base" if apart else base)}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    (test,) = [n.test for n in module.nodes(ast.If) if module.text_of(n.test) == "self.verbose"]
    found = split_of(module, test, project)
    return found.true if found is not None else None


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    ("fields", "ranks"),
    [
        ("self.verbose = dist.get_rank() == 0", Ranks.ZERO),
        ("self.verbose = True\nif dist.get_rank() != 0:\n    self.verbose = False", Ranks.ZERO),
        ("self.verbose = False\nif dist.get_rank() == 0:\n    self.verbose = True", Ranks.ZERO),
        ("self.verbose = True\nif args.distributed:\n    if args.gpu != 0:\n        self.verbose = False", Ranks.LOCAL_ZERO),
        ("self.verbose = not args.distributed or self.args.gpu == 0", Ranks.LOCAL_ZERO),
        ("self.verbose = True", None),
        ("self.verbose = args.verbose", None),
        ("self.verbose = True\nif args.quiet:\n    self.verbose = False", None),
        ("self.verbose = args.gpus == 0", None),
    ],
)
def test_what_the_base_class_gives_the_field(fields: str, ranks: Ranks | None, apart: bool) -> None:
    assert ranks_of(fields, apart=apart) is ranks


def test_what_the_class_gives_it_itself_goes_first() -> None:
    train = TRAIN.replace("    def train", "    def __init__(self):\n        self.verbose = True\n\n    def train")
    assert ranks_of("self.verbose = dist.get_rank() == 0", train=train) is None


def test_a_gpu_that_is_no_rank() -> None:
    train = TRAIN.replace("args.gpu = gpu", "args.gpu = args.device")
    assert ranks_of("self.verbose = args.gpu == 0", train=train) is None
