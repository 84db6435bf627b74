"""DDP902: the layer that decides is the one that is edited, and the rest of the file stays byte for byte."""

from __future__ import annotations

import pytest

from codemods.analysis.tuning.profiles import Tuning
from codemods.tuning.job_file_tuning import JobFileTuning as Tuned
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

SCRIPT = """\
import argparse

from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--per_device_train_batch_size", type=int, default=4)
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
parser.add_argument("--logging_steps", type=int, default=1)
args = parser.parse_args()
training = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=args.per_device_train_batch_size,
    gradient_accumulation_steps=args.gradient_accumulation_steps,
    logging_steps=args.logging_steps,
)
"""
PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, TrainingArguments

(training,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
"""
FILES = {"train.py": SCRIPT, "requirements.txt": "transformers>=4.55\n"}
PARSING = {**FILES, "train.py": PARSED}
JOB = """\
# the job
name: tune  # as it is shown
command: >-
  accelerate launch
  --num_processes 2
  train.py
  --per_device_train_batch_size 2
  --gradient_accumulation_steps 4
  --logging_steps 1
  --report_to "none"
anchors: &a [1, 2]
"""


class Four(Tuned):
    code = "DDP902"

    def __init__(self) -> None:
        super().__init__(Tuning(world_size=4))


class Cores(Tuned):
    code = "DDP902"

    def __init__(self) -> None:
        super().__init__(Tuning(cores=16))


def test_flags_in_a_folded_command() -> None:
    after = JOB.replace("size 2", "size 4").replace("steps 4", "steps 2").replace("logging_steps 1", "logging_steps 5")
    fixed = check_transformed(Tuned, JOB.replace("steps 1", "steps 5"), after, path="job.yaml", files=FILES, unsafe=True)
    assert "2 x 4 x 2 processes = 16 becomes 4 x 2 x 2 processes = 16" in fixed[0].message
    log = check_transformed(Tuned, JOB, JOB.replace("logging_steps 1", "logging_steps 5"), path="job.yaml", files=FILES)
    assert "two collectives and three waits" in log[0].message


@pytest.mark.parametrize("files", [FILES, PARSING])
def test_a_shell_script_with_continued_lines(files: dict[str, str]) -> None:
    before = "#!/bin/sh\ntorchrun --nproc_per_node=2 train.py \\\n    --logging_steps=1 \\\n    --seed 1  # same\n"
    check_transformed(Tuned, before, before.replace("=1 \\", "=5 \\"), path="run.sh", files=files)


def test_a_flag_that_is_missing_is_added_where_the_other_one_stands() -> None:
    before = "accelerate launch --num_processes 2 train.py --per_device_train_batch_size 2 --logging_steps 5\n"
    after = before.replace("size 2", "size 4").replace("steps 5", "steps 5 --gradient_accumulation_steps 2")
    check_transformed(Tuned, before, after, path="run.sh", files=FILES, unsafe=True)


def test_a_job_for_other_processes_takes_the_launcher_along() -> None:
    after = JOB.replace("processes 2", "processes 4").replace("steps 4", "steps 2").replace("logging_steps 1", "logging_steps 5")
    before = JOB.replace("logging_steps 1", "logging_steps 5")
    (found,) = check_transformed(Four, before, after, path="job.yaml", files=FILES, unsafe=True)
    assert "2 x 4 x 2 processes = 16 becomes 2 x 2 x 4 processes = 16" in found.message


def test_processes_that_the_configuration_of_accelerate_gives() -> None:
    files = {**FILES, "acc.yaml": "distributed_type: MULTI_GPU\nnum_processes: 2\n"}
    before = "accelerate launch --config_file acc.yaml train.py --gradient_accumulation_steps 4\n"
    after = before.replace("steps 4", "steps 2 --per_device_train_batch_size 8")
    (found,) = check_transformed(Tuned, before, after, path="run.sh", files=files, unsafe=True)
    assert "4 x 4 x 2 processes = 32" in found.message


def test_the_default_of_an_option_where_no_job_gives_it() -> None:
    after = SCRIPT.replace("default=1)", "default=5)")
    check_transformed(Tuned, SCRIPT, after, path="train.py", files={"requirements.txt": FILES["requirements.txt"]})
    both = after.replace('_size", type=int, default=4', '_size", type=int, default=8').replace(
        '_steps", type=int, default=4', '_steps", type=int, default=2'
    )
    check_transformed(Tuned, after, both, path="train.py", files=PIN_ONLY, unsafe=True)


PIN_ONLY = {"requirements.txt": "transformers>=4.55\n"}


def test_a_default_that_every_job_overrides_decides_nothing() -> None:
    check_nothing(Tuned, SCRIPT, path="train.py", files={"job.yaml": JOB, **PIN_ONLY})


def test_a_default_of_which_a_job_overrides_half_is_told() -> None:
    job = "torchrun --nproc_per_node=2 train.py --per_device_train_batch_size 2 --logging_steps 5\n"
    other = "torchrun --nproc_per_node=2 train.py --logging_steps 5\n"
    files = {"a.sh": job, "b.sh": other, **PIN_ONLY}
    check_told(Tuned, SCRIPT, path="train.py", reason="a.sh:1 gives one of the two itself", files=files)


def test_a_default_that_others_read_is_unsafe() -> None:
    before = SCRIPT.replace("default=4", "default=8").replace('_steps", type=int, default=8', '_steps", type=int, default=2')
    before += "print(args.logging_steps * 20)\n"
    (found,) = check_transformed(
        Tuned, before, before.replace("default=1)", "default=5)"), path="train.py", files=PIN_ONLY, unsafe=True
    )
    assert "train.py:17, which reads --logging_steps as well" in found.reason


def test_the_default_of_a_dataclass_field() -> None:
    before = (
        "from dataclasses import dataclass, field\nfrom transformers import TrainingArguments\n\n\n@dataclass\nclass Options:\n"
        "    log_every: int = field(default=1, metadata={})\n\n\ndef train(options):\n"
        "    return TrainingArguments('o', logging_steps=options.log_every)\n"
    )
    check_transformed(Tuned, before, before.replace("default=1", "default=5"), path="train.py")


# Files that a parser reads

ARGUMENTS = """\
output_dir: out   # here
learning_rate: 2.0e-4
num_train_epochs: 3
per_device_train_batch_size: 2
gradient_accumulation_steps: 4   # times two processes
logging_steps: 1
"""
READS = {
    "train.py": "from trl import SFTConfig, TrlParser\n\n(args,) = TrlParser(SFTConfig).parse_args_and_config()\n",
    **PIN_ONLY,
}


def test_a_yaml_file_of_a_parser() -> None:
    before = ARGUMENTS.replace("logging_steps: 1", "logging_steps: 5")
    after = before.replace("size: 2", "size: 4").replace("steps: 4", "steps: 2")
    files = {**READS, "run.sh": "accelerate launch --num_processes 2 train.py --config recipe.yaml\n"}
    (found,) = check_transformed(Tuned, before, after, path="recipe.yaml", files=files, unsafe=True)
    assert "2 x 4 x 2 processes = 16 becomes" in found.message


def test_a_flag_wins_over_the_file() -> None:
    files = {**READS, "run.sh": "accelerate launch --num_processes 2 train.py --config recipe.yaml --logging_steps 20\n"}
    check_told(Tuned, ARGUMENTS, path="recipe.yaml", reason="--logging_steps of run.sh:1 wins over this file", files=files)


def test_a_json_file_of_a_parser() -> None:
    before = '{"output_dir": "o", "learning_rate": 1e-4, "num_train_epochs": 1, "logging_steps": 1}\n'
    files = {"train.py": PARSED.replace("parse_args_into_dataclasses()", 'parse_json_file("args.json")')}
    check_transformed(Tuned, before, before.replace('steps": 1}', 'steps": 5}'), path="args.json", files=files)


# Refusals


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("torchrun --nproc_per_node 2 train.py --gradient_accumulation_steps $ACC", "not a whole number that stands there"),
        ("torchrun --nproc_per_node 2 train.py --gradient_accumulation_steps 64", "want of memory"),
        ("torchrun --nproc_per_node 2 train.py --save_total_limit 2", "deletes those of other runs"),
        ("torchrun --nproc_per_node 2 train.py --dataloader_num_workers 4", "folklore as a number for all machines"),
        ("torchrun --nproc_per_node 2 train.py --ddp_bucket_cap_mb 25", "folklore: 25 is the default"),
        ("torchrun --nproc_per_node 2 train.py --logging_steps 1 --eval_strategy steps", "evaluation, too"),
        (
            "torchrun --nproc_per_node 2 train.py --gradient_accumulation_steps 4 --deepspeed zero.json",
            "zero.json:1 fixes gradient_accumulation_steps as well",
        ),
    ],
)
def test_what_a_command_leaves_has_a_reason(command: str, reason: str) -> None:
    files = {**PARSING, "zero.json": '{"gradient_accumulation_steps": 4}\n'}
    check_told(Tuned, command + "\n", path="run.sh", reason=reason, files=files)


def test_a_contrastive_script_is_told_in_its_job() -> None:
    files = {**FILES, "train.py": SCRIPT + "loss = MultipleNegativesRankingLoss()\n"}
    job = JOB.replace("logging_steps 1", "logging_steps 5")
    check_told(Tuned, job, path="job.yaml", reason="the product is the same, the training is not", files=files)


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4",  # one process
        "torchrun --nproc_per_node 2 other.py --logging_steps 1",  # not in the repository
        "torchrun --nproc_per_node 2 train.py --logging_steps 10",
        "echo torchrun train.py --logging_steps 1",
    ],
)
def test_commands_of_which_nothing_is_said(command: str) -> None:
    check_nothing(Tuned, command + "\n", path="run.sh", files=FILES)


def test_workers_of_a_parsing_script() -> None:
    before = "torchrun --nproc_per_node 2 train.py --seed 1\n"
    check_transformed(
        Cores, before, "torchrun --nproc_per_node 2 train.py --seed 1 --dataloader_num_workers 8\n", path="run.sh",
        files=PARSING, unsafe=True,
    )  # fmt: skip


def test_a_comment_silences_it_in_a_shell_script() -> None:
    command = "torchrun --nproc_per_node 2 train.py --logging_steps 1"
    assert findings_of(Tuned, f"{command}\n", FILES, path="run.sh")
    check_nothing(Tuned, f"{command}  # ddpfix: ignore[DDP902] we look at each step\n", path="run.sh", files=FILES)
