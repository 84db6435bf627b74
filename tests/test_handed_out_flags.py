"""Tests of the rank that a function gives out beside other values: `first, device = set_up(args)`."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_tests import split_of
from codemods.store.project import Project

SET_UP = """\
import torch
import torch.distributed as dist


def set_up(opts):
    if opts.local_rank == -1:
        return True, 1, torch.device("cpu")
    dist.init_process_group("nccl")
    first = {first}
    return first, dist.get_world_size(), torch.device("cuda", opts.local_rank)
"""
TRAIN = """\
from set_up import set_up


def main(opts):
    {targets} = set_up(opts)
    if {asked}:
        print("begin")
"""


def ranks_of(first: str = "dist.get_rank() == 0", targets: str = "first, count, device", asked: str = "first") -> Ranks | None:
    texts = {"set_up.py": SET_UP.format(first=first), "train.py": TRAIN.format(targets=targets, asked=asked)}
    project = Project.of({path: text.encode() for path, text in texts.items()})
    module = project.module("train.py")
    assert module is not None
    (test,) = module.nodes(ast.If)
    found = split_of(module, test.test, project)
    return found.true if found is not None else None


def test_a_flag_in_its_place() -> None:
    assert ranks_of() is Ranks.ZERO
    assert ranks_of(asked="not first") is Ranks.OTHERS


@pytest.mark.parametrize(
    "changed",
    [
        {"asked": "count"},
        {"asked": "device"},
        {"targets": "count, first, device"},
        {"targets": "*first, device"},
        {"first": "opts.verbose"},
        {"first": "False"},
    ],
)
def test_what_stands_in_another_place_or_is_no_test(changed: dict[str, str]) -> None:
    assert ranks_of(**changed) is None
