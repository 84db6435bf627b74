"""DDP406: a schedule that counts the batches of the whole loader, and that `prepare` leaves out."""

from __future__ import annotations

import pytest

from codemods.data_loading.schedule_length import ScheduleLength
from ddpfix.testing import check_nothing, check_told

HEAD = (
    "import math\nfrom accelerate import Accelerator\nfrom torch.optim.lr_scheduler import CosineAnnealingLR\n"
    "from tqdm import tqdm\nfrom transformers import get_scheduler\n\n\ndef train(args, model, optimizer, loader, other):\n"
)
PREPARE = ("model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",)
COSINE = ("sched = CosineAnnealingLR(optimizer, T_max=len(loader) * args.epochs)",)
GIVEN = (
    "steps = math.ceil(len(loader) / args.accumulation)",
    "if args.max_steps is None:",
    "    args.max_steps = args.epochs * steps",
    "sched = get_scheduler(args.kind, optimizer=optimizer, num_warmup_steps=args.warm, num_training_steps=args.max_steps)",
)
ARMS = (
    "if args.split:",
    "    optimizer, loader = accelerator.prepare(optimizer, loader)",
    "else:",
    "    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
)


def program(
    made: tuple[str, ...] = COSINE,
    prepare: tuple[str, ...] = PREPARE,
    over: str = "loader",
    step: tuple[str, ...] = ("sched.step()",),
    accelerator: str = "Accelerator()",
) -> str:
    lines = (f"accelerator = {accelerator}", *made, *prepare, "for epoch in range(args.epochs):",
             f"    for batch in {over}:", "        accelerator.backward(model(batch))",
             "        optimizer.step()", *(f"        {s}" for s in step))  # fmt: skip
    return HEAD + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "source",
    [
        program(),
        program(GIVEN),
        program(GIVEN, ARMS),
        program(over="tqdm(enumerate(loader))"),
        program(step=("if batch:", "    sched.step()")),
        program(accelerator="Accelerator(mixed_precision='bf16')"),
    ],
)
def test_a_schedule_of_the_whole_loader_that_is_left_out(source: str) -> None:
    found = check_told(ScheduleLength, source, reason="give it to `accelerator.prepare`")
    assert "before `prepare` shares it out, and is not prepared itself" in found.message


@pytest.mark.parametrize(
    "source",
    [
        program(("sched = CosineAnnealingLR(optimizer, T_max=args.max_steps)",)),
        program(("sched = CosineAnnealingLR(optimizer, T_max=len(loader) // accelerator.num_processes)",)),
        program(("sched = CosineAnnealingLR(optimizer, T_max=len(other) * args.epochs)",)),
        program(PREPARE, COSINE),
        program(prepare=("model, optimizer, loader, sched = accelerator.prepare(model, optimizer, loader, sched)",)),
        program(prepare=(*PREPARE, "sched = accelerator.prepare(sched)")),
        program(prepare=("model, optimizer = accelerator.prepare(model, optimizer)",)),
        program(prepare=("parts = accelerator.prepare(*[model, optimizer, loader])",)),
        program(over="other"),
        program(step=("for _ in range(accelerator.num_processes):", "    sched.step()")),
        program(step=("pass",)),
        program(accelerator="Accelerator(split_batches=True)"),
        program(accelerator="Accelerator(**args.accelerator)"),
        program(accelerator="args.accelerator"),
    ],
)
def test_schedules_of_another_length_or_pace(source: str) -> None:
    check_nothing(ScheduleLength, source)


def test_a_step_of_each_epoch_and_one_of_each_micro_batch() -> None:
    check_nothing(ScheduleLength, program(step=("pass",)) + "        sched.step()\n")
    check_nothing(ScheduleLength, program(step=("with accelerator.accumulate(model):", "    sched.step()")))
