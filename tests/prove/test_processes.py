"""Programs that start their ranks by multiprocessing.Process, whatever way it starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.prove.on_cpu import obstacle
from ddpfix.prove.ranks import PARENT
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

PROGRAM = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world_size, queue):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="{port}")
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    value = torch.full((2,), float(rank), device=f"cuda:{{rank}}")
    dist.all_reduce(value)
    print(value.tolist(), [k for k in os.environ if k.startswith("DDPFIX_TRACE") or k == "PYTHONPATH"])
    queue.put(rank)
    dist.destroy_process_group()
    {work}


def helper(queue):
    queue.put(2)


if __name__ == "__main__":
    context = mp.get_context("{method}")
    queue = context.Queue()
    started = [context.Process(target=work, args=(rank, 2), kwargs={{"queue": queue}}) for rank in range(2)]
    started.append(context.Process(target=helper, args=(queue,)))
    for process in started:
        process.start()
    print(sorted(queue.get() for _ in started))
    for process in started:
        process.join()
"""


@pytest.mark.parametrize(("method", "port"), [("spawn", 29521), ("fork", 29522)])
def test_each_process_that_asks_for_a_group_is_a_rank(tmp_path: Path, method: str, port: int) -> None:
    ended = run(tmp_path, PROGRAM.format(method=method, port=port, work="pass"), swap=True, spawns=True)
    assert ended.outcome == "completes", ended.marked()
    assert [(r.status, r.stdout) for r in ended.ranks] == [(0, "[1.0, 1.0] []\n")] * 2
    assert [[c.op for c in t.calls] for t in ended.traces] == [["init_process_group", "all_reduce"]] * 2
    assert (PARENT, "stdout", "[0, 1, 2]") in ended.lines


def test_one_that_is_killed_is_named_though_its_parent_waits(tmp_path: Path) -> None:
    source = PROGRAM.format(method="fork", port=29523, work="os.kill(os.getpid(), 6 * rank)")  # before the queue has its number
    ended = run(tmp_path, source, swap=True, spawns=True, start=forked(*TORCH))
    assert [r.status for r in ended.ranks] == [0, -6], ended.marked()


def test_started_as_ranks_it_tells_that_it_starts_its_own(tmp_path: Path) -> None:
    ended = run(tmp_path, PROGRAM.format(method="fork", port=29524, work="pass"), swap=True, timeout=60, start=forked(*TORCH))
    assert {t.asked for t in ended.traces if t.spawns} == {2}, ended.marked()
    told = obstacle(ended, tmp_path)
    assert told and told.text.startswith("as asked: it starts 2 ranks itself, at train.py:28: process.start()")
