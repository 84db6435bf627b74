"""`ddpfix tune` as its page tells it, on a job of two processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gitrepos import make, sh
from tests.programs import ddpfix
from tests.test_how_tos import commands

TRAIN = b"""\
from transformers import AutoModelForCausalLM, HfArgumentParser, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
"""
JOB = b"""\
name: reasoner  # kept
command: >-
  torchrun --nproc_per_node 2
  train.py
  --per_device_train_batch_size 2
  --gradient_accumulation_steps 4
  --logging_steps 1
  --save_total_limit 2
"""
FILES = {"train.py": TRAIN, "jobs/reasoner.yaml": JOB, "requirements.txt": b"transformers>=4.55\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path, FILES)


def test_the_commands_of_the_page(root: Path) -> None:
    show, fast, apply = [c[1:] for c in commands("tune.md")[:3]]
    first = ddpfix(root, *show)
    assert first.returncode == 0
    assert b"2 x 4 x 2 processes = 16" in first.stdout
    assert b"+  --gradient_accumulation_steps 2" in first.stdout
    assert b"save_total_limit=2 is neither set nor lowered" in first.stdout
    assert (root / "jobs/reasoner.yaml").read_bytes() == JOB
    second = ddpfix(root, *fast)
    assert [line.split()[:2] for line in second.stdout.decode().splitlines()[1:4]] == [
        ["jobs/reasoner.yaml", "as"], ["jobs/reasoner.yaml", "standard"], ["jobs/reasoner-fast.yaml", "fast"],
    ]  # fmt: skip
    assert not (root / "jobs/reasoner-fast.yaml").exists()
    done = ddpfix(root, *apply)
    assert done.returncode == 0, done.stderr
    assert sh(root, "branch", "--show-current") == "ddpfix/tuning"
    expected = JOB.replace(b"size 2", b"size 4").replace(b"steps 4", b"steps 2").replace(b"logging_steps 1", b"logging_steps 5")
    tuned = (root / "jobs/reasoner.yaml").read_bytes()
    assert tuned == expected.rstrip(b"\n") + b"\n  --dataloader_num_workers 8\n"
    variant = (root / "jobs/reasoner-fast.yaml").read_bytes()
    assert b"batch_size 8" in variant and b"accumulation_steps 1" in variant and b"logging_steps 10" in variant
    summary = (root / "DDPFIX_SUMMARY.md").read_text()
    assert "## Configurations" in summary and "8 x 1 x 2 processes = 16" in summary
    assert "Nothing was measured" in summary and " ms" not in summary
    again = ddpfix(root, *fast)
    assert b"standard" not in again.stdout, "a second run has nothing to do"


def test_nothing_of_it_runs_by_default(root: Path) -> None:
    plain = ddpfix(root, "check", "--output-format", "json", ".")
    assert b"DDP90" not in plain.stdout
    assert b"DDP902" in ddpfix(root, "check", "--select", "tuning", ".").stdout


def test_a_profile_that_is_none_is_said(root: Path) -> None:
    wrong = ddpfix(root, "tune", "--profile", "warp")
    assert wrong.returncode == 2
    assert b"no profile is called 'warp'" in wrong.stderr


def test_a_command_that_cannot_be_measured_is_said(root: Path) -> None:
    wrong = ddpfix(root, "tune", "--measure", "make train")
    assert wrong.returncode == 2
    assert b"no script that Python runs stands in it" in wrong.stderr


def test_processes_that_the_batch_does_not_divide_by(root: Path) -> None:
    told = ddpfix(root, "tune", "--world-size", "3")
    assert b"the effective batch of 16 cannot be kept on 3 processes" in told.stdout


def test_a_batch_that_fast_would_let_grow_too_far_grows_as_for_standard(root: Path) -> None:
    (root / "jobs/reasoner.yaml").write_bytes(JOB.replace(b"accumulation_steps 4", b"accumulation_steps 8"))
    told = ddpfix(root, "tune", "--profile", "fast").stdout.decode()
    (row,) = (line.split() for line in told.splitlines() if line.startswith("jobs/reasoner-fast.yaml  fast"))
    assert " ".join(row[1:]).startswith("fast 8 x 2 x 2 processes = 32 10")
    assert (
        "jobs/reasoner-fast.yaml has the batch of the standard profile: an accumulation of 8 stands there for want of memory: "
        "a batch 8 times as large is not proposed unseen"
    ) in told
