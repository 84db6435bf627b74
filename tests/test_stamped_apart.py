"""Folders that every rank names after its own clock, and rank 0 alone makes."""

from __future__ import annotations

import pytest

from codemods.analysis.files.stamped_apart import Stamped, stamped_apart
from codemods.ranks.makedirs_race import MakedirsRace
from ddpfix.testing import MAIN, findings_of, project_of

PROGRAM = """\
import os
from datetime import datetime

import torch
import torch.distributed as dist


def main(args, model):
    dist.init_process_group("nccl")
    if args.resume:
        args.out = os.path.dirname(args.resume)
    else:
        args.out = os.path.join(args.out, datetime.now().strftime("%Y%m%d-%H%M%S"))
    if dist.get_rank() == 0:
        os.makedirs(args.out, exist_ok=True)
    train(model)
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), os.path.join(args.out, "best.pt"))
    dist.barrier()
    USE


if __name__ == "__main__":
    main(parsed(), build())
"""
LOAD = 'model.load_state_dict(torch.load(os.path.join(args.out, "best.pt")))'
ONE = 'args.out = os.path.join(args.out, datetime.now().strftime("%Y%m%d-%H%M%S"))'


def apart(source: str) -> list[Stamped]:
    project = project_of(source)
    module = project.module(MAIN)
    assert module is not None
    made = next(c for c in module.calls_named("makedirs"))
    return list(stamped_apart(project, module, made, made.args[0]))


def test_a_field_in_an_arm_out_of_which_every_rank_reads() -> None:
    source = PROGRAM.replace("USE", LOAD)
    assert [(s.name, s.reads) for s in apart(source)] == [("args.out", True)]
    (found,) = findings_of(MakedirsRace, source)
    assert found.severity == "crash" and "looks in line 20 into a folder of its own, which is not there" in found.message
    assert found.span.line == 13


def test_a_field_of_this_object_given_outright() -> None:
    source = PROGRAM.replace("USE", LOAD).replace("args.out", "self.paths.out").replace("main(args,", "main(self, args,")
    arms = "    if args.resume:\n        self.paths.out = os.path.dirname(args.resume)\n    else:\n        self"
    assert arms in source
    lines = source.replace(arms, "    self")
    assert [(s.name, s.reads) for s in apart(lines)] == [("self.paths.out", True)]


def test_a_field_into_which_every_rank_writes() -> None:
    (found,) = apart(PROGRAM.replace("USE", 'open(os.path.join(args.out, "log.txt"), "w")'))
    assert not found.reads and "writes in line 20" in found.message


@pytest.mark.parametrize(
    "use",
    [
        'if os.path.exists(os.path.join(args.out, "best.pt")):\n        ' + LOAD,
        f"try:\n        {LOAD}\n    except FileNotFoundError:\n        pass",
        f"if dist.get_rank() == 0:\n        {LOAD}",
        f"args.out = args.shared\n    {LOAD}",  # another folder by then
        'torch.load(os.path.join(args.pretrained, "best.pt"))',
        "print(args.out)",
        f"dist.broadcast_object_list([args.out], 0)\n    {LOAD}",
    ],
)
def test_nobody_fails(use: str) -> None:
    assert not apart(PROGRAM.replace("USE", use))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('datetime.now().strftime("%Y%m%d-%H%M%S")', "args.name"),  # no clock
        ("    if dist.get_rank() == 0:\n        os.makedirs(args.out,", "    os.makedirs(args.out,"),
        (f"    else:\n        {ONE}", f"    elif dist.get_rank() == 0:\n        {ONE}"),
    ],
)
def test_another_start(old: str, new: str) -> None:
    source = PROGRAM.replace("USE", LOAD)
    assert old in source
    assert not [f for f in findings_of(MakedirsRace, source.replace(old, new)) if "alone makes the folder" in f.message]
