"""Programs that start their ranks by mp.spawn: what the ranks do, how they end, and the process that starts them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ddpfix.prove.ranks import PARENT, Ended, spawned
from ddpfix.prove.seen import look
from ddpfix.prove.spawned import LEFT, SpawnedRank
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

PROGRAM = """\
import os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world_size, name):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29518")
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    value = torch.full((2,), float(rank), device=f"cuda:{{rank}}")
    {work}
    dist.all_reduce(value)
    print(name, rank, value.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    assert "RANK" not in os.environ
    world_size = {count}
    mp.spawn(work, nprocs=world_size, args=(world_size, "rank"))
    {after}
"""


VISIBLE = 'len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))'


def ran(
    folder: Path, work: str = "pass", after: str = "print('all done')", count: str = "torch.cuda.device_count()", *,
    afresh: bool = False,
) -> Ended:  # fmt: skip
    """afresh: the process and what it spawns import torch themselves."""
    start = spawned if afresh else forked(*TORCH)
    return run(folder, PROGRAM.format(work=work, after=after, count=count), swap=True, spawns=True, start=start)


@pytest.mark.proof
@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("count", ["torch.cuda.device_count()", VISIBLE])
def test_each_worker_is_a_rank_and_the_program_goes_on_behind_them(tmp_path: Path, count: str) -> None:
    ended = ran(tmp_path, count=count, afresh=count == VISIBLE)
    assert ended.outcome == "completes", ended.marked()
    assert [(r.status, r.stdout) for r in ended.ranks] == [(0, "rank 0 [1.0, 1.0]\n"), (0, "rank 1 [1.0, 1.0]\n")]
    assert [[c.op for c in t.calls] for t in ended.traces] == [["init_process_group", "all_reduce"]] * 2
    assert (PARENT, "stdout", "all done") in ended.lines


@pytest.mark.proof
@pytest.mark.torch
@needs_torch
def test_a_worker_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    ended = ran(tmp_path, work="value[5 * rank]")
    seen = look(ended, tmp_path)
    assert (seen.ended, seen.error.partition(":")[0]) == ("rank 1 fails, exit status 1", "IndexError"), ended.marked()
    assert seen.stood[1] == "rank 1 failed at train.py:11 `value[5 * rank]`"
    assert ended.ranks[0].status is None or ended.ranks[0].waited


@pytest.mark.proof
@pytest.mark.torch
@needs_torch
def test_what_fails_in_the_process_that_starts_them_is_an_error_of_the_program(tmp_path: Path) -> None:
    ended = ran(tmp_path, after="raise SystemExit('no result')")
    assert ended.outcome == "error"
    assert ended.ranks[0].status == 1 and ended.ranks[1].status == 0
    assert (PARENT, "stderr", "no result") in ended.lines


class Parent:
    """A process that has ended, or not."""

    pid = os.getpid()

    def __init__(self, status: int | None) -> None:
        self.status = status

    def poll(self) -> int | None:
        return self.status


@pytest.mark.parametrize(
    ("files", "parent", "status"),
    [
        ({}, None, None),
        ({}, 0, 0),
        ({"pid": os.getpid()}, None, None),
        ({"pid": 2**22 + 1}, None, None),
        ({"pid": 2**22 + 1}, 1, LEFT),
        ({"pid": 2**22 + 1, "exit": -6}, None, -6),
        ({"pid": os.getpid(), "status": 3, "exit": -15}, None, 3),
        ({"pid": os.getpid(), "status": 0}, None, None),
        ({"pid": 2**22 + 1, "status": 0}, None, 0),
        ({"pid": 2**22 + 1, "status": 0, "exit": -11}, None, -11),
        ({"pid": 2**22 + 1, "status": 0, "exit": -15}, None, 0),
    ],
    ids=[
        "not yet started", "never started", "at work", "gone, the parent will say", "gone", "aborted", "said so itself",
        "on its way out", "gone, done", "crashed behind its end", "done, ended for another's failure",
    ],
)
def test_how_a_rank_ended_is_read_from_what_it_left(
    tmp_path: Path, files: dict[str, int], parent: int | None, status: int | None
) -> None:
    for name, number in files.items():
        (tmp_path / f"{name}-1").write_text(str(number))
    assert SpawnedRank(tmp_path, 1, Parent(parent)).poll() == status
