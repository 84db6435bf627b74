"""A call that gives a loader does not come to `if loader is None:`, and one that leaves it out comes to nothing else."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project

SOURCE = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from parts import Board, board_of


def train(net, args, loader=None):
    {above}
    if {test}:
        torch.save(net, args.out)


def main(net, args, accelerator):
    dist.init_process_group("nccl")
    {call}


if __name__ == "__main__":
    main(*read())
"""
PARTS = "class Board:\n    pass\n\n\ndef board_of(args):\n    return Board() if args.board else None\n"


@pytest.mark.parametrize(
    ("test", "call", "comes"),
    [
        ("loader is None", "train(net, args, DataLoader(args.data))", False),
        ("loader is None", "train(net, args, loader=Board())", False),
        ("loader is None", "test = DataLoader(args.data)\ntrain(net, args, loader=test)", False),
        ("loader is None", "train(net, args, loader=[args.data])", False),
        ("loader is not None", "train(net, args)", False),
        ("not loader is None", "train(net, args, None)", False),
        ("loader is None", "train(net, args)", True),
        ("loader is None", "train(net, args, loader=board_of(args))", True),
        ("loader is None", "test = DataLoader(args.data) if args.test else None\ntrain(net, args, loader=test)", True),
        ("loader is None", "test = None\nif args.test:\n    test = DataLoader(args.data)\ntrain(net, args, loader=test)", True),
        ("loader is None", "train(net, args, *args.rest)", True),
        ("loader is None", "train(net, args, DataLoader(args.data))\ntrain(net, args)", True),
        ("loader is None", "go(train)\ntrain(net, args, DataLoader(args.data))", True),
        ("loader is None or args.small", "train(net, args, DataLoader(args.data))", True),
        ("loader is not None", "train(net, args, DataLoader(args.data))", True),
    ],
)
def test_who_comes_under_a_test_for_none(test: str, call: str, comes: bool) -> None:
    assert _comes(test, call) is comes


@pytest.mark.parametrize(
    ("above", "comes"),
    [
        ("net, loader = accelerator.prepare(net, loader)", False),
        ("loader = accelerator.prepare(loader)", False),
        ("loader, net = accelerator.prepare(net, loader)", True),
        ("net, loader = split(net, loader)", True),
        ("loader = loader if args.test else None", True),
    ],
)
def test_a_parameter_that_is_bound_again(above: str, comes: bool) -> None:
    assert _comes("loader is None", "train(net, args, DataLoader(args.data))", above) is comes


@pytest.mark.parametrize(("second", "ranks"), [("DataLoader(args.data)", Ranks.ZERO), ("args.loader", Ranks.ALL)])
def test_the_callers_that_lead_there_say_who_comes(second: str, ranks: Ranks) -> None:
    project = _project("loader is None", f"if dist.get_rank() == 0:\n    train(net, args)\ntrain(net, args, {second})")
    module = project.module("train.py")
    assert module is not None
    (saves,) = module.calls_named("save")
    assert ranks_reaching(project, module, saves) is ranks


def _comes(test: str, call: str, above: str = "pass") -> bool:
    project = _project(test, call, above)
    module = project.module("train.py")
    assert module is not None
    (saves,) = module.calls_named("save")
    return not is_run_by_nobody(project, module, saves)


def _project(test: str, call: str, above: str = "pass") -> Project:
    source = SOURCE.format(test=test, call=textwrap.indent(call, "    ").lstrip(), above=above)
    return Project.of({"train.py": source.encode(), "parts.py": PARTS.encode()})
