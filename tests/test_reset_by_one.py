"""DDP115: running sums that rank 0 alone sets back, while the loop puts them together over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.wrong_average import WrongAverage
from ddpfix.testing import check_nothing, check_told

TRAIN = """\
import torch
import torch.distributed as dist


def mean_of_ranks(value):
    whole = torch.tensor(value, device="cuda")
    dist.all_reduce(whole)
    return whole / dist.get_world_size()


def noted(value, name):
    print(name)
    return mean_of_ranks(value)


def whole_of(note, value):
    whole = torch.tensor(value, device="cuda")
    dist.all_reduce(whole)
    return note, whole


def fresh(names):
    return {{name: 0.0 for name in names}}


def train(model, loader, loss_of, names):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    running = {start}
    for step, (x, y) in enumerate(loader):
        loss = loss_of(model(x), y)
        loss.backward()
        {added}
        if step % 10 == 9:
            {joined}
            if rank == 0:
                print("loss", whole)
                {inside}
            {behind}
"""
NUMBER = {"start": "0.0", "added": "running += loss.item()", "inside": "running = 0.0", "behind": "pass"}
DIRECT = 'whole = torch.tensor(running / 10, device="cuda")\n            dist.all_reduce(whole)'
DICT = {
    "start": "fresh(names)", "added": "running[names[0]] += loss.item()", "inside": "running = fresh(names)", "behind": "pass",
    "joined": "whole = [None] * dist.get_world_size()\n            dist.all_gather_object(whole, running[names[0]])",
}  # fmt: skip


def told(**parts: str) -> str:
    return TRAIN.format(**parts)


@pytest.mark.parametrize(
    "parts",
    [{**NUMBER, "joined": DIRECT}, {**NUMBER, "joined": "whole = mean_of_ranks(running / 10)"},
     {**NUMBER, "joined": "whole = whole_of(step, running)"}, DICT],
)  # fmt: skip
def test_a_sum_that_rank_zero_alone_sets_back(parts: dict[str, str]) -> None:
    found = check_told(WrongAverage, told(**parts), reason="set it back on every rank")
    assert "rank 0 alone sets `running` back" in found.message and found.evidence[0].line == 33


@pytest.mark.parametrize(
    "change",
    [
        {"inside": "pass", "behind": "running = 0.0"},
        {"behind": "if rank != 0:\n                running = 0.0"},
        {"inside": "running = 1e-3 * running"},
        {"inside": "pass", "joined": "whole = mean_of_ranks(loss.item())", "behind": "running = 0.0"},
        {"joined": "whole = mean_of_ranks(loss.item())"},
        {"joined": "whole = running / 10"},
        {"joined": "whole = noted(loss.item(), running)"},
        {"joined": "whole = whole_of(running, loss.item())"},
        {"added": "if rank == 0:\n            running += loss.item()"},
    ],
)
def test_sums_that_are_set_back_alike_or_are_not_put_together(change: dict[str, str]) -> None:
    check_nothing(WrongAverage, told(**{**NUMBER, "joined": "whole = mean_of_ranks(running / 10)", **change}))


def test_tensors_that_are_set_back_in_their_place() -> None:
    parts = {**NUMBER, "start": "torch.zeros(1)", "added": "running += loss.detach()", "joined": DIRECT}
    check_nothing(WrongAverage, told(**{**parts, "inside": "running.zero_()", "behind": "running.zero_()"}))
