from __future__ import annotations

import pytest

from codemods.sync.misplaced_gradient_sync import MisplacedGradientSync
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "from contextlib import nullcontext\n\nfrom torch.nn.parallel import DistributedDataParallel\n\n\n"
STEP = ("if (i + 1) % every == 0:", "    optimizer.step()", "    optimizer.zero_grad()")


def loop(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"{HEAD}def train(net, loader, optimizer, scaler, every, ddp):\n    model = DistributedDataParallel(net)\n"
        f"    for i, (x, y) in enumerate(loader):\n{body}"
    )


FLAG = "model.require_backward_grad_sync = (i + 1) % every == 0"
OTHER_WAY = "model.require_backward_grad_sync = i % every != 0"
FORWARD, BACK = "loss = model(x).mean() / every", "loss.backward()"


@pytest.mark.parametrize("back", [BACK, "scaler.scale(loss).backward()"])
def test_the_switch_goes_in_front_of_the_forward(back: str) -> None:
    check_transformed(
        MisplacedGradientSync, loop(FORWARD, FLAG, back, *STEP), loop(FLAG, FORWARD, back, *STEP), unsafe=True
    )


def test_a_forward_in_a_block_of_its_own() -> None:
    forward = ("with autocast():", f"    {FORWARD}")
    before, after = loop(*forward, "loss = loss / 2", FLAG, BACK, *STEP), loop(FLAG, *forward, "loss = loss / 2", BACK, *STEP)
    check_transformed(MisplacedGradientSync, before, after, unsafe=True)


def test_a_switch_under_a_test_of_its_own() -> None:
    switch = ("if ddp:", f"    {FLAG}")
    before, after = loop(FORWARD, *switch, BACK, *STEP), loop(*switch, FORWARD, BACK, *STEP)
    check_transformed(MisplacedGradientSync, before, after, unsafe=True)


def test_a_switch_that_reads_what_the_forward_gives() -> None:
    source = loop(FORWARD, "last = (i + 1) % every", "model.require_backward_grad_sync = last == 0", BACK, *STEP)
    check_told(MisplacedGradientSync, source, reason="in front of the forward")


def test_a_switch_beside_other_lines_or_comments() -> None:
    for lines in (("if ddp:", "    # the last one", f"    {FLAG}"), ("if ddp:", f"    {FLAG}", "    print(i)")):
        found = check_told(MisplacedGradientSync, loop(FORWARD, *lines, BACK, *STEP), reason="in front of the forward")
        assert "decides over the next micro batch" in found.message


def test_the_wrong_way_round() -> None:
    before = loop("model.require_backward_grad_sync = (i + 1) % every != 0", FORWARD, BACK, *STEP)
    check_transformed(MisplacedGradientSync, before, loop(FLAG, FORWARD, BACK, *STEP), unsafe=True)


def test_no_sync_in_the_micro_batch_that_steps() -> None:
    quiet = "with model.no_sync() if (i + 1) % every {} 0 else nullcontext():"
    inside = (f"    {FORWARD}", f"    {BACK}")
    before, after = (loop(quiet.format(op), *inside, *STEP) for op in ("==", "!="))
    after = after.replace("if (i + 1) % every != 0 else", "if ((i + 1) % every != 0) else")
    check_transformed(MisplacedGradientSync, before, after, unsafe=True)


def test_a_context_that_is_chosen_the_wrong_way() -> None:
    before = loop("with nullcontext() if (i + 1) % every != 0 else model.no_sync():", f"    {FORWARD}", f"    {BACK}", *STEP)
    after = before.replace("(i + 1) % every != 0 else", "((i + 1) % every == 0) else")
    check_transformed(MisplacedGradientSync, before, after, unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        (FLAG, FORWARD, BACK, *STEP),
        (FORWARD, "model.require_backward_grad_sync = False", BACK, *STEP),
        (FORWARD, BACK, FLAG, *STEP),
        (FORWARD, FLAG, "other = model(y).mean()", "(loss + other).backward()", *STEP),
        ("loss = other(x).mean()", FLAG, BACK, *STEP),
        ("with nullcontext() if (i + 1) % every == 0 else model.no_sync():", f"    {FORWARD}", f"    {BACK}", *STEP),
        ("with model.no_sync() if (i + 1) % every != 0 else nullcontext():", f"    {FORWARD}", f"    {BACK}", *STEP),
        (OTHER_WAY, FORWARD, BACK, "i += 1", "if i % every == 0:", "    optimizer.step()"),
        (OTHER_WAY, FORWARD, BACK, *STEP),
        (OTHER_WAY, FORWARD, BACK, "if i % every == 0:", "    sched.step()"),
        ("model.require_backward_grad_sync = i != last", FORWARD, BACK, "if i == last:", "    optimizer.step()"),
    ],
)
def test_what_is_right_or_not_seen(lines: tuple[str, ...]) -> None:
    check_nothing(MisplacedGradientSync, loop(*lines))


def test_a_switch_outside_of_any_loop() -> None:
    source = (
        f"{HEAD}def step(model, x, last):\n    loss = model(x).mean()\n    model.require_backward_grad_sync = last == 0\n"
        "    loss.backward()\n"
    )
    check_nothing(MisplacedGradientSync, source)


def test_tests_of_a_repository() -> None:
    check_nothing(MisplacedGradientSync, loop(FORWARD, FLAG, BACK, *STEP), path="tests/test_train.py")


QUIET = """from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net, optimizer, scaler, many):
        self.net = DistributedDataParallel(net) if many else net
        self.optimizer = optimizer
        self.scaler = scaler
        self.is_distributed = many

    def step(self, batches, last, every):
        losses = []
        {enter}
            for batch in batches:
                loss = self.net(batch).mean() / len(batches)
                loss.backward()
                losses.append(loss)
        {behind}
        return sum(losses)
"""
ENTER, STEPS = "with self.net.no_sync():", "self.optimizer.step()"
LATER = "loss = self.net(last).mean()\n        loss.backward()\n        self.optimizer.step()"


def quiet(*, enter: str = ENTER, behind: str = STEPS) -> str:
    return QUIET.format(enter=enter, behind=behind)


@pytest.mark.parametrize(
    "enter",
    [
        ENTER,
        "with self.net.no_sync() if self.is_distributed else nullcontext():",
        "quiet = self.net.no_sync() if self.is_distributed else nullcontext()\n        with quiet:",
        "with autocast(), self.net.no_sync():",
    ],
)
def test_no_sync_round_all_micro_batches(enter: str) -> None:
    found = check_told(MisplacedGradientSync, quiet(enter=enter), reason="outside of `no_sync()`")
    assert "all micro batches run under `self.net.no_sync()`" in found.message


@pytest.mark.parametrize(
    "behind",
    [
        "print(sum(losses))\n        self.optimizer.step()",
        "self.scaler.step(self.optimizer)\n        self.scaler.update()",
        "if every:\n            clip_grad_norm_(self.net.parameters(), every)\n        self.optimizer.step()",
    ],
)
def test_a_step_that_each_way_comes_to(behind: str) -> None:
    check_told(MisplacedGradientSync, quiet(behind=behind), reason="outside of `no_sync()`")


def test_a_step_behind_the_test_round_the_loop() -> None:
    inner = quiet(enter="if every > 1:\n          with self.net.no_sync():")
    check_told(MisplacedGradientSync, inner, reason="outside of `no_sync()`")


@pytest.mark.parametrize(
    "behind",
    [
        LATER,
        "if last:\n            self.optimizer.step()",
        "if not last:\n            return 0\n        self.optimizer.step()",
        "self.last(last)\n        self.optimizer.step()\n\n    def last(self, x):\n        self.net(x).mean().backward()",
        "for p in self.net.parameters():\n            dist.all_reduce(p.grad)\n        self.optimizer.step()",
        "self.optimizer.step()\n        average_weights(self.net)",
        "self.schedule.step()",
    ],
)
def test_steps_that_may_follow_an_average(behind: str) -> None:
    check_nothing(MisplacedGradientSync, quiet(behind=behind))


@pytest.mark.parametrize(
    "enter",
    [
        "with self.net.no_sync() if not last else nullcontext():",
        "with self.net.no_sync() if self.is_distributed and not last else nullcontext():",
        "with nullcontext() if self.is_distributed else self.net.no_sync():",
        "quiet = self.net.no_sync()\n        quiet = last or quiet\n        with quiet:",
        "for _ in range(every):\n         with self.net.no_sync():",
        "with self.critic.no_sync():",
        "with accelerator.no_sync(self.net):",
    ],
)
def test_contexts_that_may_leave_the_last_batch_out(enter: str) -> None:
    check_nothing(MisplacedGradientSync, quiet(enter=enter))


def test_a_loop_that_switches_the_average_on_or_a_second_optimizer() -> None:
    flag = "                loss = "
    switched = quiet().replace(flag, f"                self.net.require_backward_grad_sync = batch is last\n{flag}")
    check_nothing(MisplacedGradientSync, switched)
    check_nothing(MisplacedGradientSync, quiet(behind="self.gen_optimizer.step()\n        self.optimizer.step()"))
    check_nothing(MisplacedGradientSync, quiet().replace("                loss.backward()\n", ""))
