"""DDP901: speed in the keywords of TrainingArguments; the effective batch is kept, or the reason for leaving it is told."""

from __future__ import annotations

import pytest

from codemods.analysis.tuning.profiles import Load, NoLoad, Tuning, rebalanced, workers_for
from codemods.tuning.training_arguments_tuning import TrainingArgumentsTuning as Tuned
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\n"
PIN = {"requirements.txt": "transformers>=4.50\n"}


class Fast(Tuned):
    code = "DDP901"

    def __init__(self) -> None:
        super().__init__(Tuning("fast"))


class Sixteen(Tuned):
    code = "DDP901"

    def __init__(self) -> None:
        super().__init__(Tuning(world_size=4, cores=16))


def call(arguments: str, *, head: str = HEAD, name: str = "TrainingArguments") -> str:
    return f"{head}args = {name}({arguments})\n"


# Arithmetic


@pytest.mark.parametrize(
    ("now", "tuning", "then"),
    [
        (Load(2, 4, 2), Tuning(), (4, 2)),
        (Load(2, 4, 2), Tuning("fast"), (8, 1)),
        (Load(4, 2, 2), Tuning(), (4, 2)),
        (Load(8, 1, 2), Tuning("fast"), (8, 1)),
        (Load(4, 3, 0), Tuning(), (12, 1)),
        (Load(4, 4, 1), Tuning(world_size=4), (4, 1)),
        (Load(8, 1, 2), Tuning(world_size=4), (4, 1)),
        (Load(2, 4, 2), Tuning(world_size=8), (2, 1)),
    ],
)
def test_the_effective_batch_is_kept_and_a_second_time_nothing_changes(now: Load, tuning: Tuning, then: tuple[int, int]) -> None:
    made = rebalanced(now, tuning)
    assert isinstance(made, Load)
    assert (made.batch, made.accumulation) == then
    assert made.effective == (now.effective if now.world else now.share)
    assert rebalanced(made, tuning) == made


def test_what_cannot_be_kept_or_is_too_much_is_said() -> None:
    odd = rebalanced(Load(5, 1, 3), Tuning(world_size=2))
    assert isinstance(odd, NoLoad)
    assert "no multiple" in odd.why and "learning rate" in odd.why
    deep = rebalanced(Load(1, 64, 2), Tuning())
    assert isinstance(deep, NoLoad)
    assert "32 times as large" in deep.why


def test_workers_share_the_cores_of_a_machine() -> None:
    assert [workers_for(16, 2), workers_for(64, 2), workers_for(8, 8), workers_for(4, 8)] == [8, 8, 1, 1]


# Rewrites


def test_logging_every_step() -> None:
    check_transformed(Tuned, call('"o", logging_steps=1, seed=1'), call('"o", logging_steps=5, seed=1'))
    check_transformed(Fast, call('"o", logging_steps=5'), call('"o", logging_steps=10'))


@pytest.mark.parametrize(
    "arguments",
    [
        '"o", logging_steps=5',
        '"o", logging_steps=500',
        '"o"',
        '"o", logging_steps=0.1',
        '"o", logging_steps=1, logging_strategy="epoch"',
    ],
)
def test_logging_that_is_seldom_enough(arguments: str) -> None:
    check_nothing(Tuned, call(arguments))


def test_evaluation_that_follows_the_log_is_told() -> None:
    check_told(Tuned, call('"o", logging_steps=1, eval_strategy="steps"'), reason="evaluation, too, comes every logging_steps")
    check_transformed(
        Tuned, call('"o", logging_steps=1, eval_strategy="steps", eval_steps=50'),
        call('"o", logging_steps=5, eval_strategy="steps", eval_steps=50'),
    )  # fmt: skip


def test_a_callback_that_reads_the_log_makes_it_unsafe() -> None:
    callback = "class Watch:\n    def on_log(self, args, state, control, logs=None, **more): ...\n\n\n"
    before = callback + call('"o", logging_steps=2')
    (found,) = check_transformed(Tuned, before, before.replace("logging_steps=2", "logging_steps=5"), unsafe=True)
    assert "needs no entry for every step" in found.reason


BOTH = "per_device_train_batch_size={}, gradient_accumulation_steps={}"


@pytest.mark.parametrize("name", ["TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "OwnArguments"])
def test_batch_and_accumulation_of_any_heir(name: str) -> None:
    """TRL's SFTConfig and a project's own class are TrainingArguments by their source."""
    source = {"SFTConfig": "trl", "OwnArguments": "own"}.get(name, "transformers")
    own = (
        "from dataclasses import dataclass\nfrom transformers import TrainingArguments\n\n\n@dataclass\n"
        "class OwnArguments(TrainingArguments):\n    depth: int = 1\n"
    )
    head = f"from transformers import AutoModelForCausalLM\nfrom {source} import {name}\n\n"
    before = call('"o", ' + BOTH.format(2, 4), head=head, name=name)
    after = call('"o", ' + BOTH.format(4, 2), head=head, name=name)
    (found,) = check_transformed(Tuned, before, after, unsafe=True, files={"own.py": own, **PIN})
    assert "2 x 4 = 8 on each process becomes 4 x 2 = 8 on each process" in found.message
    assert "learning rate" in found.message
    assert "fits into the device's memory" in found.reason and "halve the batch" in found.reason


def test_a_batch_that_is_left_out_is_eight() -> None:
    before = call('"o", gradient_accumulation_steps=4')
    after = call('"o", gradient_accumulation_steps=2, per_device_train_batch_size=16')
    check_transformed(Tuned, before, after, unsafe=True, files=PIN)
    check_nothing(Tuned, call('"o", per_device_train_batch_size=4'), files=PIN)


def test_the_processes_come_from_the_job_that_starts_the_script() -> None:
    files = {"run.sh": "torchrun --nproc_per_node 2 module.py\n", **PIN}
    before, after = call('"o", ' + BOTH.format(2, 4)), call('"o", ' + BOTH.format(4, 2))
    (found,) = check_transformed(Tuned, before, after, unsafe=True, files=files)
    assert "2 x 4 x 2 processes = 16 becomes 4 x 2 x 2 processes = 16" in found.message


def test_an_old_or_unknown_transformers_is_an_assumption() -> None:
    (found,) = [f for f in findings_of(Tuned, call('"o", ' + BOTH.format(2, 4))) if "batch" in f.message]
    assert "that transformers is 4.46 or newer" in found.reason
    (pinned,) = findings_of(Tuned, call('"o", ' + BOTH.format(2, 4)), PIN)
    assert "4.46" not in pinned.reason


def test_another_model_weighs_its_samples_by_an_assumption() -> None:
    head = "from transformers import AutoModelForTokenClassification, TrainingArguments\n\n"
    (found,) = findings_of(Tuned, call('"o", ' + BOTH.format(2, 4), head=head), PIN)
    assert "the loss weighs all samples alike" in found.reason
    head = head.replace("Token", "Sequence")
    (found,) = findings_of(Tuned, call('"o", ' + BOTH.format(2, 4), head=head), PIN)
    assert "weighs" not in found.reason


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("norm = torch.nn.BatchNorm2d(8)\n", "BatchNorm takes its statistics from the micro-batch (module.py:"),
        ("loss = InfoNCELoss()\n", "a contrastive loss takes its negatives from the micro-batch"),
        (
            "class Own(Trainer):\n    def compute_loss(self, model, inputs, **more):\n        return model(**inputs).mean()\n",
            "Own.compute_loss (module.py:",
        ),
    ],
)
def test_where_the_product_is_not_all_it_is_told(more: str, reason: str) -> None:
    check_told(Tuned, call('"o", ' + BOTH.format(2, 4)) + more, reason=reason, files=PIN)


def test_a_loss_that_counts_the_items_is_none_of_those() -> None:
    own = (
        "class Own(Trainer):\n    def compute_loss(self, model, inputs, num_items_in_batch=None, **more):\n"
        "        return model(**inputs).sum() / num_items_in_batch\n"
    )
    (found,) = findings_of(Tuned, call('"o", ' + BOTH.format(2, 4)) + own, PIN)
    assert found.fix is not None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('"o", ' + BOTH.format(1, 64), "stands there for want of memory"),
        ('"o", ddp_bucket_cap_mb=25', "folklore: 25 is the default"),
        ('"o", ddp_bucket_cap_mb=100', "a matter of measuring"),
        ('"o", save_total_limit=2', "deletes those of other runs"),
        ('"o", dataloader_num_workers=4', "folklore as a number for all machines"),
        ('"o", dataloader_pin_memory=True', "is the default"),
    ],
)
def test_what_is_left_has_a_reason(arguments: str, reason: str) -> None:
    check_told(Tuned, call(arguments), reason=reason, files=PIN)


def test_a_number_that_is_computed_is_left() -> None:
    code = "a = 8 // 2\n" + call('"o", per_device_train_batch_size=2, gradient_accumulation_steps=a')
    check_nothing(Tuned, code, files=PIN)
    check_nothing(Tuned, call("**more"), files=PIN)
    check_nothing(Tuned, "from own import SomeConfig\nargs = SomeConfig(logging_steps=1)\n")


# Workers


def test_workers_follow_the_cores_and_the_processes() -> None:
    (found,) = check_transformed(Sixteen, call('"o"'), call('"o", dataloader_num_workers=4'), unsafe=True)
    assert "4 for each process (16 cores, 4 processes of a machine)" in found.message
    check_nothing(Tuned, call('"o"'))  # nobody said how many cores there are
    check_nothing(Sixteen, call('"o", dataloader_num_workers=2'))


def test_more_workers_than_cores() -> None:
    before = call('"o", dataloader_num_workers=8')
    (found,) = check_transformed(Sixteen, before, call('"o", dataloader_num_workers=4'), unsafe=True)
    assert "32 worker processes on 16 cores" in found.message


def test_no_workers_for_a_loader_of_ones_own() -> None:
    own = "class Own(Trainer):\n    def get_train_dataloader(self): ...\n"
    check_told(Sixteen, call('"o"') + own, reason="makes the loader itself")
