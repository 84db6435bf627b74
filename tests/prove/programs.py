"""Small programs for the tests of what runs and watches them."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ddpfix.prove import proof
from ddpfix.prove.ranks import Ended, Launch, Process, Start, run_ranks, spawned
from ddpfix.tune import measure
from tests.bot.shell import Shell
from tests.proofs.harness import TORCH, forked

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def run(folder: Path, source: str, *, world_size: int = 2, timeout: float = 300, steps: int = 0, swap: bool = False,
        env: Mapping[str, str] | None = None, memory_limit: int = 0, spawns: bool = False,
        start: Start = spawned) -> Ended:  # fmt: skip
    """Run a program, given as text, as ranks."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(source)
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "LANG") if k in os.environ}
    return run_ranks(
        [sys.executable, "train.py"], world_size=world_size, cwd=folder, env={**kept, **(env or {})}, timeout=timeout,
        steps=steps, swap=swap, memory_limit=memory_limit, spawns=spawns, start=start,
    )  # fmt: skip


def forking_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, *modules: str) -> Shell:
    """`ddpfix` in the tester's process and in `folder`, where `prove` and `tune` fork the ranks of `python …`.

    An import of a framework takes five seconds of CPU a rank. The command as a process of its own, with ranks that start afresh,
    is what the tests of raw torch run.
    """
    ready = forked(*TORCH, *modules)

    def start(launch: Launch, stdout: int, stderr: int) -> Process:
        assert launch.command[0] == "python"
        return ready(replace(launch, command=(sys.executable, *launch.command[1:])), stdout, stderr)

    for module in (proof, measure):
        monkeypatch.setattr(module, "run_ranks", functools.partial(run_ranks, start=start))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(folder)
    return Shell(monkeypatch, capsys)


NET = """\
import os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ["RANK"])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 1)
        self.spare = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.second(self.first(x).relu())


def train(model, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step * 10 + RANK))
        model(x).pow(2).mean().backward()
        optimizer.step()
"""
