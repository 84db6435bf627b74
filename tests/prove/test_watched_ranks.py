"""Real ranks of torch over gloo: hangs with the lines they stand at, weights, unused parameters, bounded steps."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ddpfix.prove import compare
from ddpfix.prove.ranks import STACK_SIGNAL, Ended
from ddpfix.prove.seen import Wrong, look
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import NET, needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]


def forked_run(folder: Path, source: str, *, steps: int = 0, swap: bool = False) -> Ended:
    """The ranks as forks of a process that has torch: the hangs, which end ranks by signals, start theirs afresh."""
    return run(folder, source, steps=steps, swap=swap, start=forked(*TORCH))


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "train.py").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_ranks_that_wait_for_each_other_hang_and_are_named(tmp_path: Path) -> None:
    source = (
        "import os, torch\nimport torch.distributed as dist\n\n"
        "dist.init_process_group('gloo')\nvalue = torch.zeros(1)\n"
        "if dist.get_rank() == 0:\n    dist.recv(value, src=1)\nelse:\n    dist.recv(value, src=0)\n"
    )
    ended = run(tmp_path, source)
    assert ended.outcome == "hang"
    assert ended.seconds < 40
    assert [(str(r.stood_at), r.stood_at.text) for r in ended.ranks if r.stood_at] == [
        ("train.py:7", "dist.recv(value, src=1)"), ("train.py:9", "dist.recv(value, src=0)"),
    ]  # fmt: skip


def test_a_rank_that_the_question_for_its_stack_ends_has_hung_too(tmp_path: Path) -> None:
    source = (
        "import signal, torch\nimport torch.distributed as dist\n"
        "dist.init_process_group('gloo')\nvalue = torch.zeros(1)\n"
        "signal.signal(signal.SIGRTMIN + 9, signal.SIG_DFL)  # as Lightning does at the end of fit\n"
        "dist.recv(value, src=1 - dist.get_rank())\n"
    )
    ended = run(tmp_path, source)
    assert ended.outcome == "hang"
    assert [(r.status, str(r.stood_at)) for r in ended.ranks] == [(None, "train.py:6"), (None, "train.py:6")]


def test_a_rank_whose_peer_the_question_ends_is_named_where_it_stood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import signal, torch\nimport torch.distributed as dist\n"
        "dist.init_process_group('gloo')\nrank, value = dist.get_rank(), torch.zeros(1)\n"
        "if rank == 0:\n    signal.signal(signal.SIGRTMIN + 9, signal.SIG_DFL)\n    dist.recv(value, src=1)\n"
        "try:\n    dist.recv(value, src=0)\nexcept RuntimeError:\n    signal.pause()\n"
    )
    ask = os.kill

    def slowly(pid: int, number: int) -> None:
        ask(pid, number)
        if number == STACK_SIGNAL:
            time.sleep(0.5)  # a busy machine: the first rank is gone before the second one is asked

    monkeypatch.setattr(os, "kill", slowly)
    ended = run(tmp_path, source)
    assert ended.outcome == "hang"
    assert [str(r.stood_at) for r in ended.ranks] == ["train.py:7", "train.py:9"]


def test_a_rank_that_waits_for_one_that_sleeps_does_not_hang(tmp_path: Path) -> None:
    source = (
        "import time\nimport torch.distributed as dist\n"
        "dist.init_process_group('gloo')\nif dist.get_rank() == 1:\n    time.sleep(6)\n"
        "dist.barrier()\nprint('met')\ndist.destroy_process_group()\n"
    )
    ended = forked_run(tmp_path, source)
    assert ended.outcome == "completes"
    assert [r.stdout for r in ended.ranks] == ["met\n", "met\n"]


def test_a_collective_under_a_guard_is_named_with_both_lines(tmp_path: Path) -> None:
    source = NET + (
        "\ndist.init_process_group('gloo')\nmodel = DistributedDataParallel(Net(), find_unused_parameters=True)\n"
        "train(model)\nif RANK == 0:\n    dist.barrier()\ntotal = torch.ones(1)\ndist.all_reduce(total)\n"
    )
    ended = forked_run(tmp_path, source)
    assert ended.outcome == "hang"
    seen = look(ended, tmp_path)
    assert not seen.right
    assert f"rank 0 barrier at train.py:{line_of(tmp_path, 'dist.barrier()')} `dist.barrier()`" in seen.order
    assert any(f"at train.py:{line_of(tmp_path, 'dist.all_reduce(total)')} " in line for line in seen.order)


def test_weights_and_unused_parameters_and_steps(tmp_path: Path) -> None:
    source = NET + (
        "\ndist.init_process_group('nccl')\ntorch.manual_seed(0)\n"
        "model = DistributedDataParallel(Net(), find_unused_parameters=True)\ntrain(model, 50)\nprint('never here')\n"
    )
    ended = forked_run(tmp_path, source, steps=4, swap=True)
    assert ended.outcome == "completes"
    assert [t.stopped for t in ended.traces] == [4, 4]
    assert [r.stdout for r in ended.ranks] == ["", ""]
    assert compare.weights_that_differ(ended.traces) == ()
    (unused,) = compare.unused_parameters(ended.traces)
    assert unused.never == ("spare.bias", "spare.weight")
    seen = look(ended, tmp_path)
    assert seen.ended == "stopped after 4 steps"
    assert seen.notes == ("NCCL was asked for; run with gloo on the CPU",)
    assert seen.right


def test_weights_that_differ_are_named(tmp_path: Path) -> None:
    source = NET + (
        "\ndist.init_process_group('gloo')\nmodel = DistributedDataParallel(Net(), find_unused_parameters=True)\n"
        "train(model)\nwith torch.no_grad():\n    model.module.second.bias += RANK\ndist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    ended = forked_run(tmp_path, source)
    assert [d.name for d in compare.weights_that_differ(ended.traces)] == ["Net #0: second.bias"]
    cause = "after as many steps: they began with other values, or a rank changed them by itself"
    assert look(ended, tmp_path).wrong == (Wrong("the ranks end with other weights", cause),)


@pytest.mark.parametrize(("then", "differ"), [("", False), ("train(model, 1)\n", True)])
def test_weights_that_a_rank_loads_after_its_training_are_no_result_of_it(tmp_path: Path, then: str, differ: bool) -> None:
    source = NET + (
        "\ndist.init_process_group('gloo')\nmodel = DistributedDataParallel(Net(), find_unused_parameters=True)\n"
        "best = {k: v.clone() for k, v in model.module.state_dict().items()}\ntrain(model)\n"
        f"if RANK == 0:\n    model.module.load_state_dict(best)\n{then}dist.barrier()\n"
    )
    assert bool(compare.weights_that_differ(forked_run(tmp_path, source).traces)) is differ


def test_training_past_the_wrapper_is_named_as_the_cause(tmp_path: Path) -> None:
    source = NET + (
        "\ndist.init_process_group('gloo')\ntorch.manual_seed(0)\nmodel = DistributedDataParallel(Net())\ntrain(model.module)\n"
        "total = torch.ones(1)\ndist.all_reduce(total)\n"
    )
    cause = "DDP averaged no gradients: no forward pass went through the wrapper, or all were made under `no_sync()`"
    assert look(forked_run(tmp_path, source), tmp_path).wrong == (Wrong("the ranks end with other weights", cause),)


EPOCHS = NET + """
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Net(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(16, 4))
sampler, for_tests = DistributedSampler(data), DistributedSampler(data)
for epoch in range(3):
    SET
    model.train()
    for i, (x,) in enumerate(DataLoader(data, batch_size=4, sampler=sampler)):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if i == 1:
            model.eval()
            for (x,) in DataLoader(data, batch_size=4, sampler=for_tests):
                model(x)
            model.train()
"""


@pytest.mark.parametrize(
    ("line", "order", "wrong"),
    [
        ("pass", "the same order", ("each epoch has the samples in the same order",)),
        ("sampler.set_epoch(epoch)", "another order", ()),
    ],
)
def test_an_order_that_each_epoch_repeats_is_named(tmp_path: Path, line: str, order: str, wrong: tuple[str, ...]) -> None:
    seen = look(forked_run(tmp_path, EPOCHS.replace("SET", line)), tmp_path)
    loop = "for i, (x,) in enumerate(DataLoader(data, batch_size=4, sampler=sampler)):"
    assert seen.samples == (f"{order} in each of 3 epochs at train.py:{line_of(tmp_path, loop)} `{loop}`",)
    assert tuple(map(str, seen.wrong)) == wrong


def test_a_missing_gradient_is_a_crash_of_the_programs_own(tmp_path: Path) -> None:
    source = NET + "\ndist.init_process_group('gloo')\nmodel = DistributedDataParallel(Net())\ntrain(model)\n"
    ended = forked_run(tmp_path, source)
    assert ended.outcome == "error"
    assert "Expected to have finished reduction" in ended.ranks[0].stderr
    seen = look(ended, tmp_path)
    assert seen.unused == ("no gradient ever: spare.bias, spare.weight",)
    assert f"train.py:{line_of(tmp_path, 'model(x)')}" in seen.stood[0]
