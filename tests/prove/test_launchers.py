"""The command that trains, in the user's words."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from ddpfix.prove.launchers import as_installed, of_rank, understood


@pytest.mark.parametrize(
    ("given", "command", "launcher"),
    [
        ("python train.py --lr 1", "python train.py --lr 1", ""),
        ("torchrun --nproc_per_node=8 train.py --lr 1", "python train.py --lr 1", "torchrun"),
        ("torchrun --standalone --nnodes 1 --nproc-per-node 2 train.py -m x", "python train.py -m x", "torchrun"),
        ("torchrun -m pkg.train --epochs 3", "python -m pkg.train --epochs 3", "torchrun"),
        ("torchrun --no-python ./run.sh", "./run.sh", "torchrun"),
        ("python3 -m torch.distributed.run --nproc_per_node 4 train.py", "python3 train.py", "torchrun"),
        ("python -m torch.distributed.launch --use_env train.py a", "python train.py a", "torch.distributed.launch"),
        ("python -m torch.distributed.launch --nproc_per_node 2 train.py a", "python train.py '--local-rank=${local_rank}' a",
         "torch.distributed.launch"),
        ("python -m torch.distributed.launch -m pkg.train", "python -m pkg.train '--local-rank=${local_rank}'",
         "torch.distributed.launch"),
        ("accelerate launch train.py", "python train.py", "accelerate launch"),
        ("accelerate launch --multi_gpu --mixed_precision bf16 train.py x", "python train.py x", "accelerate launch"),
        ("uv run torchrun --nproc_per_node 2 train.py", "uv run python train.py", "torchrun"),
        ("uv run python train.py", "uv run python train.py", ""),
    ],
)  # fmt: skip
def test_launchers_are_taken_off(given: str, command: str, launcher: str) -> None:
    training = understood(shlex.split(given))
    assert shlex.join(training.command) == command
    assert training.launcher == launcher


def test_settings_in_front_are_kept() -> None:
    training = understood(["LR=3", "MODE=fast", "python", "train.py", "A=b"])
    assert training.settings == (("LR", "3"), ("MODE", "fast"))
    assert training.command == ("python", "train.py", "A=b")


@pytest.mark.parametrize("given", [[], ["torchrun", "--nproc_per_node", "2"], ["A=1"]])
def test_what_is_no_command_is_told(given: list[str]) -> None:
    with pytest.raises(ValueError):
        understood(given)


LAUNCH = "-m torch.distributed.launch --nproc_per_node 2 train.py --epochs 3"


def test_each_rank_is_given_its_number() -> None:
    command = understood(shlex.split(f"python {LAUNCH}")).command
    assert of_rank(command, 1) == ("python", "train.py", "--local-rank=1", "--epochs", "3")
    assert of_rank(("python", "train.py", "--out", "run-${local_rank}"), 0) == ("python", "train.py", "--out", "run-0")


@pytest.mark.parametrize(("version", "option"), [("1.13.1+cu117", "--local_rank=1"), ("2.0.0", "--local-rank=1")])
def test_the_option_is_spelled_as_the_installed_torch_spells_it(tmp_path: Path, version: str, option: str) -> None:
    there = tmp_path / "torch-1.dist-info"
    there.mkdir()
    (there / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    training = as_installed(understood([sys.executable, *shlex.split(LAUNCH)]), {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert of_rank(training.command, 1)[1:3] == ("train.py", option)
