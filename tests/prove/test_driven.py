"""Programs that a framework drives find each other as ranks on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

ACCELERATE = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
model = accelerator.prepare(torch.nn.Linear(2, 2))
print(accelerator.num_processes, type(model).__name__, torch.cuda.is_available())
"""


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="needs accelerate")
def test_accelerate_takes_no_rank_for_alone(tmp_path: Path) -> None:
    ended = run(tmp_path, ACCELERATE, swap=True, start=forked(*TORCH, "accelerate"))
    assert [r.stdout for r in ended.ranks] == ["2 DistributedDataParallel False\n"] * 2, ended.marked()
