from __future__ import annotations

import ast

import pytest

from codemods.analysis.guards.measured_models import only_measures
from codemods.store.project import Project
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import findings_of

MEASURES = """
import time

import torch
import torch.distributed as dist


def {name}(parts, x):
    start = time.time()
    for part in parts:
        y = part(x)
        try:
            y.sum().backward()
        except RuntimeError:
            print("no backward")
        {more}
    return time.time() - start


def average(value):
    dist.all_reduce(value)
    return value
"""
PROGRAM = """
import flops
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from tools import average
{imported}


def show(net):
    from flops import timed

    print(timed(net))


if __name__ == "__main__":
    dist.init_process_group("nccl")
    net = DDP(torch.nn.Linear(4, 4))
    {line}
    average(net(torch.zeros(1, 4)).mean())
"""


def lines_of(name: str = "timed", more: str = "pass", imported: str = "", line: str = "pass", program: bool = True) -> list[int]:
    files = {"train.py": PROGRAM.format(imported=imported, line=line)} if program else {}
    found = findings_of(OneRankDecision, MEASURES.format(name=name, more=more), files, path="tools.py")
    return [f.span.line for f in found]


@pytest.mark.parametrize("line", ["pass", "flops.timed(net)", "print('timed')", "print(args.timed)", "show(net)"])
def test_a_helper_that_measures_and_that_nothing_calls(line: str) -> None:
    assert lines_of(line=line) == []


@pytest.mark.parametrize(
    ("name", "more", "imported", "line"),
    [
        ("timed", "pass", "from tools import timed", "timed([net], torch.zeros(1, 4))"),
        ("timed", "pass", "import tools", "tools.timed([net], torch.zeros(1, 4))"),
        ("timed", "pass", "from tools import timed", "run(timed)"),
        ("main", "pass", "", "pass"),
    ],
)
def test_what_is_called_handed_on_or_trains_is_told(name: str, more: str, imported: str, line: str) -> None:
    assert lines_of(name, more, imported, line)


def test_functions_of_a_project_without_programs_are_told() -> None:
    assert lines_of(program=False)


@pytest.mark.parametrize(("more", "measures"), [("pass", True), ("optimizer.step()", False), ("self.optimizer.step()", False)])
def test_a_step_of_an_optimizer_is_a_training(more: str, measures: bool) -> None:
    tools = MEASURES.format(name="timed", more=more).encode()
    files = {"tools.py": tools, "train.py": PROGRAM.format(imported="", line="pass").encode()}
    project = Project(files, files.get)
    module = project.module("tools.py")
    assert module is not None
    (attempt,) = module.nodes(ast.Try)
    assert only_measures(project, module, attempt) is measures
