"""DDP608: a batch size that each rank looks for by itself."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.several_started import started_on_several
from codemods.store.project import Project
from codemods.trainer.batch_size_of_each_rank import BatchSizeOfEachRank
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = BatchSizeOfEachRank
HEAD = "from transformers import Seq2SeqTrainingArguments, Trainer, TrainingArguments\n\n\n"
RUN = {"README.md": "# Start\n\n    torchrun --nproc_per_node 4 tune/train.py --lr 1e-4\n"}


def train(*given: str, kind: str = "TrainingArguments") -> str:
    lines = "".join(f"        {g},\n" for g in ("'out'", *given))
    return f"{HEAD}def main(model, rows, options):\n    args = {kind}(\n{lines}    )\n    Trainer(model, args, rows).train()\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("kind", ["TrainingArguments", "Seq2SeqTrainingArguments"])
@pytest.mark.parametrize(
    "start",
    [
        "torchrun --nproc_per_node 4 tune/train.py --lr 1e-4",
        "torchrun --nproc-per-node=$GPUS \\\n    --master_port 29501 \\\n    tune/train.py",
        "accelerate launch --multi_gpu --num_processes 2 ./tune/train.py",
        "CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node=2 tune/train.py",
        "deepspeed tune/train.py --deepspeed zero.json",
        "# 多GPU请用accelerate launch --multi_gpu --num_processes gpu个数 tune/train.py",
    ],
)
def test_a_script_that_is_started_on_several_processes(kind: str, start: str) -> None:
    files = {"run.sh": f"set -e\n{start}\n"}
    before = train("max_steps=9", "auto_find_batch_size=True", kind=kind)
    after = train("max_steps=9", kind=kind)
    check_transformed(RULE, before, after, files=files, path="tune/train.py", unsafe=True)


def test_a_dict_of_arguments() -> None:
    body = "def main(model, rows):\n    given = {'output_dir': 'out', %s'max_steps': 9}\n"
    body += "    Trainer(model, TrainingArguments(**given), rows).train()\n"
    search = "'auto_find_batch_size': True, "
    check_transformed(RULE, HEAD + body % search, HEAD + body % "", files=RUN, path="tune/train.py", unsafe=True)
    shown = HEAD + body % search + "    print(given)\n"
    check_told(RULE, shown, files=RUN, path="tune/train.py", reason="set a batch size that fits")


@pytest.mark.parametrize("beside", ["fsdp='full_shard'", "deepspeed='zero.json'", "ddp_backend='gloo'", "local_rank=options.r"])
def test_arguments_for_several_processes(beside: str) -> None:
    check_transformed(RULE, train(beside, "auto_find_batch_size=True"), train(beside), unsafe=True)


@pytest.mark.parametrize("beside", ["fsdp=''", "deepspeed=None", "ddp_backend=None", "local_rank=-1", "max_steps=9"])
def test_arguments_that_say_nothing_of_processes(beside: str) -> None:
    check_nothing(RULE, train(beside, "auto_find_batch_size=True"))


@pytest.mark.parametrize(
    "start",
    [
        "python tune/train.py",
        "torchrun tune/train.py",
        "torchrun --nproc_per_node 1 tune/train.py",
        "accelerate launch tune/train.py",
        "accelerate launch --num_processes 1 tune/train.py --num_processes 4",
        "deepspeed --num_gpus 1 tune/train.py",
        "torchrun --nproc_per_node 4 tune/pretrain.py",  # another script
        "torchrun --nproc_per_node 4 tune/other.py  # see also the table",
    ],
)
def test_a_script_that_one_process_runs(start: str) -> None:
    check_nothing(RULE, train("auto_find_batch_size=True"), files={"run.sh": f"{start}\n"}, path="tune/train.py")


@pytest.mark.parametrize("value", ["False", "options.search", "None"])
def test_a_search_that_is_off_or_left_to_an_option(value: str) -> None:
    check_nothing(RULE, train(f"auto_find_batch_size={value}"), files=RUN, path="tune/train.py")


def test_other_classes_and_tests_of_the_repository() -> None:
    own = train("auto_find_batch_size=True").replace("from transformers import", "from mine import")
    check_nothing(RULE, own, files=RUN, path="tune/train.py")
    check_nothing(RULE, train("fsdp='full_shard'", "auto_find_batch_size=True"), path="tests/test_train.py")


UNDER = (
    "from accelerate import Accelerator\nfrom accelerate.utils import find_executable_batch_size\n\n\n"
    "def main(net, make):\n    accelerator = Accelerator()\n\n    @find_executable_batch_size(starting_batch_size=64)\n"
    "    def work(batch_size):\n        model, rows = accelerator.prepare(net, make(batch_size))\n"
    "        for x in rows:\n            accelerator.backward(model(x))\n\n    work()\n"
)


def test_a_training_under_the_decorator() -> None:
    found = check_told(RULE, UNDER, files=RUN, path="tune/train.py", reason="on one process first")
    assert "wait for it in prepare()" in found.message
    check_nothing(RULE, UNDER, path="tune/train.py")
    plain = UNDER.replace("accelerator.prepare(net, make(batch_size))", "net, make(batch_size)")
    plain = plain.replace("accelerator.backward", "note")
    check_nothing(RULE, plain, files=RUN, path="tune/train.py")
    check_nothing(RULE, UNDER.replace("from accelerate.utils", "from mine"), files=RUN, path="tune/train.py")


def test_the_line_of_the_command() -> None:
    text = "# a\ntorchrun \\\n  --nproc_per_node 1 one.py\n\ntorchrun --nproc_per_node 2 \\\n  two.py\n"
    project = Project.of({"run.sh": text.encode(), "two.py": b""})
    shown = started_on_several(project, "two.py")
    assert shown is not None and shown.line == 5
    assert started_on_several(project, "one.py") is None
