from __future__ import annotations

import pytest

from codemods.trainer.accumulation_wiped import AccumulationWiped
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nfrom accelerate import Accelerator\n\n"


def block(*lines: str, made: str = "Accelerator(gradient_accumulation_steps=4)", before: str = "") -> str:
    body = "".join(f"            {line}\n" for line in lines)
    return (
        f"{HEAD}accelerator = {made}\n\n\ndef train(model, optimizer, loader, args):\n    for x, y in loader:\n{before}"
        f"        with accelerator.accumulate(model):\n{body}"
    )


BACK = ("loss = model(x, y)", "accelerator.backward(loss)")
WIPE, STEP = "optimizer.zero_grad()", "optimizer.step()"


def raw(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"def train(model, optimizer, loader, args):\n    for i, (x, y) in enumerate(loader):\n{body}"


ROUNDS = (
    "if (i + 1) % args.every == 0:",
    "    model(x, y).backward()",
    "    optimizer.step()",
    "    optimizer.zero_grad()",
    "else:",
    "    with model.no_sync():",
    "        model(x, y).backward()",
)


def test_the_wipe_goes_behind_the_step() -> None:
    check_transformed(AccumulationWiped, block(WIPE, *BACK, STEP), block(*BACK, STEP, WIPE), unsafe=True)


def test_a_comment_that_speaks_of_something_else_stays() -> None:
    before = block("# Predict the noise", WIPE, *BACK, STEP)
    check_transformed(AccumulationWiped, before, block("# Predict the noise", *BACK, STEP, WIPE), unsafe=True)
    check_transformed(AccumulationWiped, block("# reset the gradients", WIPE, *BACK, STEP), block(*BACK, STEP, WIPE), unsafe=True)


def test_the_wipe_between_forward_and_backward() -> None:
    lines = ("loss = model(x, y)", "optimizer.zero_grad(set_to_none=True)", "accelerator.backward(loss)", STEP)
    after = ("loss = model(x, y)", "accelerator.backward(loss)", STEP, "optimizer.zero_grad(set_to_none=True)")
    check_transformed(AccumulationWiped, block(*lines), block(*after), unsafe=True)


def test_a_wipe_that_stands_behind_the_step_already_is_not_written_twice() -> None:
    check_transformed(AccumulationWiped, block(WIPE, *BACK, STEP, WIPE), block(*BACK, STEP, WIPE), unsafe=True)


def test_a_step_under_a_test_of_the_last_micro_batch() -> None:
    tail = ("if accelerator.sync_gradients:", "    optimizer.step()")
    after = (*BACK, *tail, "    optimizer.zero_grad()")
    check_transformed(AccumulationWiped, block(WIPE, *BACK, *tail), block(*after), unsafe=True)


def test_a_wipe_in_a_block_inside() -> None:
    inside = tuple(f"    {line}" for line in (WIPE, *BACK, STEP))
    after = tuple(f"    {line}" for line in (*BACK, STEP, WIPE))
    head = "with accelerator.autocast():"
    check_transformed(AccumulationWiped, block(head, *inside), block(head, *after), unsafe=True)


def test_two_optimizers_in_turn() -> None:
    lines = ("first.zero_grad()", *BACK, "first.step()", "second.zero_grad()", *BACK, "second.step()")
    after = (*BACK, "first.step()", "first.zero_grad()", *BACK, "second.step()", "second.zero_grad()")
    check_transformed(AccumulationWiped, block(*lines), block(*after), unsafe=True)


def test_a_loop_with_no_sync_loses_its_wipe() -> None:
    check_transformed(AccumulationWiped, raw(WIPE, *ROUNDS), raw(*ROUNDS), unsafe=True)


def test_told_where_a_step_in_the_loop_has_no_wipe_behind_it() -> None:
    rounds = tuple(line for line in ROUNDS if "zero_grad" not in line)
    check_told(AccumulationWiped, raw(WIPE, *rounds), reason="behind the optimizer's step")


def test_a_wipe_that_shares_its_line() -> None:
    before = block(f"{WIPE}; loss = model(x, y)", BACK[1], STEP)
    check_transformed(AccumulationWiped, before, block("loss = model(x, y)", BACK[1], STEP, WIPE), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        (*BACK, STEP, WIPE),
        (*BACK, WIPE, STEP),
        (WIPE, *BACK),
        ("if args.first:", "    optimizer.zero_grad()", *BACK, STEP),
        ("other.zero_grad()", *BACK, STEP),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(AccumulationWiped, block(*lines))


def test_nothing_of_a_wipe_in_front_of_the_block() -> None:
    check_nothing(AccumulationWiped, block(*BACK, STEP, before=f"        {WIPE}\n"))


@pytest.mark.parametrize("made", ["Accelerator()", "Accelerator(gradient_accumulation_steps=1)"])
def test_nothing_of_an_accelerator_with_one_step(made: str) -> None:
    check_nothing(AccumulationWiped, block(WIPE, *BACK, STEP, made=made))


def test_nothing_of_another_accumulate() -> None:
    source = block(WIPE, *BACK, STEP).replace("accelerator.accumulate", "meter.accumulate")
    check_nothing(AccumulationWiped, source)


def test_nothing_of_a_loop_that_steps_in_each_round() -> None:
    lines = (WIPE, "with model.no_sync():", "    model(x, y).backward()", "model(y, x).backward()", STEP)
    check_nothing(AccumulationWiped, raw(*lines))


def test_nothing_of_a_loop_that_wipes_behind_its_steps() -> None:
    check_nothing(AccumulationWiped, raw(*ROUNDS))


def test_nothing_of_the_repositorys_own_tests() -> None:
    assert not findings_of(AccumulationWiped, block(WIPE, *BACK, STEP), path="tests/test_train.py")


def rounds(*lines: str, above: tuple[str, ...] = (), behind: tuple[str, ...] = (STEP,)) -> str:
    inside = "".join(f"            {line}\n" for line in lines)
    first, then = ("".join(f"        {line}\n" for line in part) for part in (above, behind))
    return (
        "def train(model, optimizer, scaler, batches, steps):\n    for _ in range(100):\n"
        f"{first}        for micro in range(steps):\n{inside}{then}"
    )


LOSS = ("loss = model(next(batches)) / steps", "loss.backward()")


def test_a_wipe_in_each_round_of_one_step() -> None:
    before = rounds(WIPE, *LOSS, above=(WIPE,))
    check_transformed(AccumulationWiped, before, rounds(*LOSS, above=(WIPE,)), unsafe=True)
    check_transformed(AccumulationWiped, rounds(WIPE, *LOSS), rounds(*LOSS, above=(WIPE,)), unsafe=True)


def test_a_wipe_between_lines_of_the_round() -> None:
    loss = ("x = next(batches)", WIPE, "loss = model(x)", "loss /= steps", "scaler.scale(loss).backward()")
    after = tuple(line for line in loss if line != WIPE)
    behind = ("scaler.step(optimizer)", "scaler.update()")
    check_transformed(
        AccumulationWiped, rounds(*loss, above=(WIPE,), behind=behind), rounds(*after, above=(WIPE,), behind=behind), unsafe=True
    )


def test_a_wipe_of_a_round_that_shares_its_line() -> None:
    after = rounds("x = next(batches)", *LOSS, above=(WIPE,))
    check_transformed(AccumulationWiped, rounds(f"x = next(batches); {WIPE}", *LOSS), after, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        rounds(WIPE, "loss = model(next(batches))", "loss.backward()"),
        rounds(WIPE, *LOSS, STEP, behind=()),
        rounds(WIPE, *LOSS, behind=()),
        rounds(WIPE, *LOSS, behind=("other.step()",)),
        rounds(*LOSS, WIPE),
        rounds(WIPE, "total = model(next(batches)).item() / steps", "model(next(batches)).backward()"),
        rounds(*LOSS, above=(WIPE,)),
        rounds(WIPE, *LOSS).replace("range(steps)", "range(2 * steps)"),
    ],
)
def test_rounds_that_are_fine(source: str) -> None:
    check_nothing(AccumulationWiped, source)


ENGINE = "AcceleratorState().deepspeed_plugin.deepspeed_config['train_micro_batch_size_per_gpu'] = 8\n"


@pytest.mark.parametrize(
    "asked",
    [ENGINE, ENGINE.replace("AcceleratorState()", "accelerator.state"), "print(accelerator.state.deepspeed_plugin.stage)\n"],
)
def test_a_program_that_runs_under_deepspeed_alone(asked: str) -> None:
    """The prepared optimizer's `zero_grad` and `step` do nothing there: the engine does both in `backward`."""
    source = block(WIPE, *BACK, STEP)
    check_nothing(AccumulationWiped, source.replace("\n\n\ndef train", f"\n{asked}\n\ndef train"))


@pytest.mark.parametrize(
    "asked",
    [
        f"if accelerator.state.deepspeed_plugin is not None:\n    {ENGINE}",
        f"try:\n    {ENGINE}except AttributeError:\n    pass\n",
        f"def under_zero():\n    {ENGINE}",  # nobody calls it
        "print(accelerator.state.deepspeed_plugin)\n",
        "print(options.deepspeed_plugin.stage)\n",
        f"{ENGINE}other = Accelerator\n\n\ndef plain():\n    return Accelerator()\n",
    ],
)
def test_a_program_that_may_run_without_deepspeed(asked: str) -> None:
    source = block(WIPE, *BACK, STEP)
    assert findings_of(AccumulationWiped, source.replace("\n\n\ndef train", f"\n{asked}\n\ndef train"))


def test_every_command_is_for_deepspeed() -> None:
    source, zero = block(WIPE, *BACK, STEP), "distributed_type: DEEPSPEED\nnum_processes: 8\n"
    command = "accelerate launch --config_file {} train.py\n"
    files = {"zero.yaml": zero, "ddp.yaml": "distributed_type: MULTI_GPU\n", "run.sh": command.format("zero.yaml")}
    check_nothing(AccumulationWiped, source, files=files, path="train.py")
    assert findings_of(AccumulationWiped, source, files | {"two.sh": command.format("ddp.yaml")}, path="train.py")
    assert findings_of(AccumulationWiped, source, files | {"two.sh": "accelerate launch train.py\n"}, path="train.py")
