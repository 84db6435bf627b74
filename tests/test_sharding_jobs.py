"""DDP501 where a command of the repository shards the model: its state is a collective, and no guard may stand round it."""

from __future__ import annotations

import pytest

from codemods.analysis.files.sharding_jobs import sharded_by
from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import check_told, findings_of, project_of

TRAIN = (
    "from transformers import HfArgumentParser, Trainer, TrainingArguments\n\n\ndef train():\n"
    "    parser = HfArgumentParser(TrainingArguments)\n    training_args, = parser.parse_args_into_dataclasses()\n"
    "    trainer = Trainer(model=load(), args=training_args)\n    trainer.train()\n"
    "    trainer.model.save_pretrained(training_args.output_dir)\n\n\nif __name__ == '__main__':\n    train()\n"
)
FSDP = 'torchrun --nproc_per_node=4 train.py \\\n    --bf16 True \\\n    --fsdp "full_shard auto_wrap"\n'


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": FSDP},
        {"run.sh": "accelerate launch --use_fsdp train.py\n"},
        {
            "run.sh": "accelerate launch --config_file configs/a.yaml train.py\n",
            "configs/a.yaml": "distributed_type: FSDP\nnum_processes: 2\n",
        },
        {
            "run.sh": "torchrun --nproc_per_node 2 train.py --deepspeed ./configs/zero.json\n",
            "configs/zero.json": '{"zero_optimization": {"stage": 3}}\n',
        },
        {"run.sh": "torchrun --nproc_per_node 2 train.py run.yaml\n", "run.yaml": 'fsdp: "full_shard auto_wrap"\n'},
    ],
)
def test_a_command_that_shards_the_model(files: dict[str, str]) -> None:
    found = check_told(UnguardedSave, TRAIN, files=files, path="train.py", reason="call `trainer.save_model()` on every rank")
    assert found.reason.startswith("run.sh:1 shards the model")


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": FSDP.replace("train.py", "other.py") + "torchrun train.py\n", "other.py": "import torch\n"},
        {"run.sh": FSDP.replace('"full_shard auto_wrap"', '""')},
        {"run.sh": "torchrun --nproc_per_node 2 train.py --deepspeed zero.json\n", "zero.json": '{"zero": {"stage": 2}}\n'},
        {"run.sh": "torchrun --nproc_per_node 2 train.py run.yaml\n", "run.yaml": 'fsdp: ""\nfsdp_config: null\n'},
        {"run.sh": "torchrun --nproc_per_node 2 train.py a.yaml\n", "a.yaml": "lr: 1\n", "b.yaml": "fsdp: full_shard\n"},
    ],
)
def test_commands_that_leave_it_whole(files: dict[str, str]) -> None:
    (found,) = findings_of(UnguardedSave, TRAIN, files, path="train.py")
    assert found.edits
    assert sharded_by(project_of(TRAIN, files, path="train.py"), "train.py") == ""


def test_a_tokenizer_has_no_part_of_the_model() -> None:
    source = TRAIN.replace("trainer.model.save_pretrained", "load_tokenizer().save_pretrained")
    assert all("shards the model" not in (f.reason or "") for f in findings_of(UnguardedSave, source, {"run.sh": FSDP}))
