"""The command that trains, in the user's words."""

from __future__ import annotations

import shlex

import pytest

from ddpfix.prove.launchers import understood


@pytest.mark.parametrize(
    ("given", "command", "launcher"),
    [
        ("python train.py --lr 1", "python train.py --lr 1", ""),
        ("torchrun --nproc_per_node=8 train.py --lr 1", "python train.py --lr 1", "torchrun"),
        ("torchrun --standalone --nnodes 1 --nproc-per-node 2 train.py -m x", "python train.py -m x", "torchrun"),
        ("torchrun -m pkg.train --epochs 3", "python -m pkg.train --epochs 3", "torchrun"),
        ("torchrun --no-python ./run.sh", "./run.sh", "torchrun"),
        ("python3 -m torch.distributed.run --nproc_per_node 4 train.py", "python3 train.py", "torchrun"),
        ("python -m torch.distributed.launch --use_env train.py a", "python train.py a", "torchrun"),
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
