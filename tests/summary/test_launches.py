"""The repository's own commands."""

from __future__ import annotations

import pytest

from ddpfix.summary import launches
from tests.summary.made import EXAMPLES, found_launches, on_disk

TRAINER = b"from lightning.pytorch import Trainer\ntrainer = Trainer(devices=2)\n"
RAW = b"import torch.distributed as dist\nimport model\ndist.init_process_group('gloo')\n"
TRAIN = {"train.py": RAW, "model.py": b"x = 1\n"}


def told(files: dict[str, bytes], *changed: str) -> list[tuple[str, int, str]]:
    new = {path: files[path] for path in changed or ("train.py",)}
    return [(found.path, found.line, found.command) for found in launches(files, files.get, new)]


def two(command: str, *, path: str = "run.sh", script: bytes = RAW) -> str | None:
    """What is shown of a command that stands alone in a script."""
    found = told({**TRAIN, "train.py": script, path: command.encode() + b"\n"})
    return found[0][2] if found else None


@pytest.mark.parametrize(
    ("example", "command"),
    [
        ("raw-ddp-vision", "torchrun --standalone --nproc_per_node=2 train.py --config configs/tiny.yaml"),
        ("hf-speech", "torchrun --standalone --nproc_per_node=2 finetune.py --config configs/tiny.json --output_dir out"),
        ("lightning-diffusion", "python train.py --devices 2"),
        ("lightning-classifier", "python train.py --run single --devices 2"),
    ],
)
def test_of_the_examples_commands_one_that_can_be_pasted(example: str, command: str) -> None:
    folder = EXAMPLES / example / "before"
    (found,) = found_launches(folder, on_disk(folder).after)
    assert (found.path, found.command, found.counted) == ("README.md", command, True)


def test_a_folded_text_of_a_job_file_is_one_command() -> None:
    (job,) = found_launches(EXAMPLES / "hf-finetune" / "before", {"finetune.py": b""})
    assert job.path == "jobs/sft-2gpu.yaml"
    assert job.command.startswith("accelerate launch --num_processes 2 --config_file configs/accelerate-2gpu.yaml finetune.py ")
    assert job.command.endswith("--save_total_limit 2")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("torchrun --nproc-per-node 8 train.py", "torchrun --nproc-per-node 2 train.py"),
        ("torchrun --nproc_per_node=$N train.py", "torchrun --nproc_per_node=2 train.py"),
        ('torchrun --nproc_per_node="${N:-8}" train.py "$@"', "torchrun --nproc_per_node=2 train.py"),
        ("torchrun train.py", "torchrun --nproc_per_node=2 train.py"),
        ("accelerate launch --num_processes=8 train.py", "accelerate launch --num_processes=2 train.py"),
        ("accelerate launch train.py", "accelerate launch --num_processes 2 train.py"),
        ("deepspeed --hostfile h train.py", "deepspeed --num_gpus 2 train.py"),
        ("python -m torch.distributed.launch train.py --x", "python -m torch.distributed.launch --nproc_per_node=2 train.py --x"),
        ("torchrun --nnodes=4 --node_rank $R --master_addr $A train.py", "torchrun --nproc_per_node=2 train.py"),
        ("CUDA_VISIBLE_DEVICES=3 PYTHONPATH=. torchrun train.py", "PYTHONPATH=. torchrun --nproc_per_node=2 train.py"),
        ("torchrun -m train --x", "torchrun --nproc_per_node=2 -m train --x"),
        ("python train.py --x 1", "torchrun --standalone --nproc_per_node=2 train.py --x 1"),
    ],
)
def test_two_processes_on_this_machine(command: str, shown: str) -> None:
    assert two(command) == shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("$PYTHON train.py --trainer.devices 8", "python train.py --trainer.devices 2"),
        ("python train.py trainer.devices=8", "python train.py trainer.devices=2"),
        ("python train.py", "python train.py"),
    ],
)
def test_what_starts_its_processes_itself_is_left_to_python(command: str, shown: str) -> None:
    assert two(command, script=TRAINER) == shown


@pytest.mark.parametrize(
    "command",
    [
        "torchrun $method.py $config $2",
        'torchrun train.py --config "$CONFIG"',
        "torchrun train.py --data /path/to/data",
        "torchrun train.py --data <folder>",
        "torchrun train.py --data <folder> --x 1",
        "torchrun train.py --out $(date)",
        "torchrun train.py ...",
    ],
)
def test_a_command_with_a_word_that_nobody_knows_is_not_shown(command: str) -> None:
    assert two(command) is None


def test_it_comes_to_a_file_that_was_changed() -> None:
    files = {**TRAIN, "other.py": RAW.replace(b"model", b"os"), "run.sh": b"torchrun other.py\ntorchrun train.py\n"}
    assert told(files, "model.py") == [("run.sh", 2, "torchrun --nproc_per_node=2 train.py")]
    assert told(files, "run.sh") and told({**files, "unread.py": b""}, "unread.py") == []


def test_the_training_comes_before_the_evaluation_and_the_readme_before_a_script() -> None:
    files = {
        **TRAIN,
        "eval.py": RAW,
        "README.md": b"```bash\ntorchrun eval.py\ntorchrun --nproc_per_node=8 train.py --a 1\n```\n",
        "go.sh": b"torchrun \\\n  --nproc_per_node=4 \\\n  train.py > log.txt 2>&1\n",
    }
    assert told(files, "model.py") == [("README.md", 3, "torchrun --nproc_per_node=2 train.py --a 1")]
    del files["README.md"]
    assert told(files, "model.py") == [("go.sh", 1, "torchrun --nproc_per_node=2 train.py")]


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("README.md", "```\ncd tool\ntorchrun train.py\n```", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("README.md", "```\ngit clone u\ncd u/tool\ntorchrun train.py\n```", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/jobs/a.sh", 'cd "$(dirname "$0")/.."\ntorchrun train.py', "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/a.sh", "torchrun train.py", "cd tool && torchrun --nproc_per_node=2 train.py"),
        ("tool/a.sh", "torchrun tool/train.py", "torchrun --nproc_per_node=2 tool/train.py"),
        ("a.sh", "torchrun -m tool.train", "torchrun --nproc_per_node=2 -m tool.train"),
    ],
)
def test_the_folder_that_it_needs_is_gone_to(path: str, text: str, shown: str) -> None:
    files = {"tool/train.py": RAW, "tool/model.py": b"", path: text.encode() + b"\n"}
    assert [command for _, _, command in told(files, "tool/train.py")] == [shown]


def test_one_of_two_scripts_of_a_name_is_told_by_the_other_files_of_the_command() -> None:
    files = {"train.py": RAW, "b/train.py": RAW, "b/c.yaml": b"", "b/go.sh": b"torchrun train.py --config c.yaml\n"}
    assert told(files, "b/train.py") == [("b/go.sh", 1, "cd b && torchrun --nproc_per_node=2 train.py --config c.yaml")]


def test_comments_prints_and_names_are_no_commands() -> None:
    text = b"# torchrun train.py\necho torchrun train.py\nTORCHRUN=torchrun\nmy-torchrun train.py\n"
    assert told({**TRAIN, "run.sh": text, "a.yaml": b"x: torchrun\n"}) == []


def test_unreadable_and_huge_files_are_passed_over() -> None:
    files = {**TRAIN, "a.sh": b"\xff\xfe torchrun train.py\n", "b.sh": b"torchrun train.py\n" + b"#" * 100_000}
    assert told(files) == []
    assert launches(["gone.sh"], lambda _path: None, {}) == ()
