"""The repository's own commands."""

from __future__ import annotations

import pytest

from ddpfix.summary import launches
from ddpfix.summary.launches import with_two_processes
from tests.summary.made import EXAMPLES, found_launches

TRAINER = b"trainer = Trainer(devices=2)\n"


def told(files: dict[str, bytes]) -> list[tuple[str, int, str]]:
    return [(found.path, found.line, found.command) for found in launches(files, files.get)]


@pytest.mark.parametrize(
    ("example", "command"),
    [
        ("raw-ddp-vision", 'torchrun --standalone --nproc_per_node=2 train.py --config "$CONFIG" "${@:2}"'),
        ("hf-speech", 'torchrun --standalone --nproc_per_node=2 finetune.py --config "$CONFIG" --output_dir "$OUTPUT" "$@"'),
        ("lightning-diffusion", 'python train.py --configs configs/tiny.yaml --devices 2 "$@"'),
    ],
)
def test_the_examples_own_scripts(example: str, command: str) -> None:
    first = found_launches(EXAMPLES / example / "before")[0]
    assert first.path == "launch.sh"
    assert first.two == command.replace("--configs", "--config")


def test_a_folded_text_of_a_job_file_is_one_command() -> None:
    found = found_launches(EXAMPLES / "hf-finetune" / "before")
    (job,) = [launch for launch in found if launch.path == "jobs/sft-2gpu.yaml"]
    assert job.two.startswith("accelerate launch --num_processes 2 --config_file configs/accelerate-2gpu.yaml finetune.py ")
    assert job.two.endswith("--save_total_limit 2")


@pytest.mark.parametrize(
    ("command", "two"),
    [
        ("torchrun --nproc-per-node 8 a.py", "torchrun --nproc-per-node 2 a.py"),
        ("torchrun --nproc_per_node=$N a.py", "torchrun --nproc_per_node=2 a.py"),
        ('torchrun --nproc_per_node="${N:-8}" a.py', "torchrun --nproc_per_node=2 a.py"),
        ("torchrun a.py", "torchrun --nproc_per_node=2 a.py"),
        ("accelerate launch --num_processes=8 a.py", "accelerate launch --num_processes=2 a.py"),
        ("accelerate launch a.py", "accelerate launch --num_processes 2 a.py"),
        ("python -m torch.distributed.launch a.py --x", "python -m torch.distributed.launch --nproc_per_node=2 a.py --x"),
        ("python a.py --trainer.devices 8", "python a.py --trainer.devices 2"),
        ("python a.py", "python a.py"),
    ],
)
def test_two_processes(command: str, two: str) -> None:
    assert with_two_processes(command) == two


def test_plain_python_counts_only_where_the_script_starts_processes_itself() -> None:
    files = {"run.sh": b"python prepare.py --x\npython train.py --y\n", "prepare.py": b"print(1)\n", "train.py": TRAINER}
    assert told(files) == [("run.sh", 2, "python train.py --y")]


def test_a_launcher_comes_before_plain_python_and_a_script_before_the_readme() -> None:
    files = {
        "README.md": b"```\ntorchrun --nproc_per_node=8 train.py\n```\n",
        "run.sh": b"python train.py --y\n",
        "go.sh": b"torchrun \\\n  --nproc_per_node=4 \\\n  train.py > log.txt 2>&1\n",
        "train.py": TRAINER,
    }
    assert told(files) == [("go.sh", 1, "torchrun --nproc_per_node=4 train.py")]


def test_comments_prints_and_names_are_no_commands() -> None:
    files = {"run.sh": b"# torchrun a.py\necho torchrun a.py\nTORCHRUN=torchrun\nmy-torchrun a.py\n", "a.yaml": b"x: torchrun\n"}
    assert told(files) == []


def test_unreadable_and_huge_files_are_passed_over() -> None:
    files = {"a.sh": b"\xff\xfe torchrun x.py\n", "b.sh": b"torchrun x.py\n" + b"#" * 100_000}
    assert [found[0] for found in told(files)] == ["a.sh"]
    assert launches(["gone.sh"], lambda _path: None) == ()
