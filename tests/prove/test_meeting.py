"""Ranks that the program lets meet on another machine, as another number, or all as the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpfix.prove.on_cpu import Obstacle, obstacle
from ddpfix.prove.ranks import Ended
from tests.proofs.harness import TORCH, forked
from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

HEAD = "import os, sys\nimport torch\nimport torch.distributed as dist\nrank = int(os.environ['RANK'])\n"


def ran(folder: Path, source: str) -> Ended:
    return run(folder, HEAD + source, swap=True, start=forked(*TORCH))


@pytest.mark.parametrize(
    "group",
    [
        'dist.init_process_group("nccl", f"tcp://node-1:{port}", world_size=2, rank=rank)',
        'dist.init_process_group("nccl", init_method=f"tcp://10.255.0.1:{port}", world_size=2, rank=rank)',
        'os.environ["MASTER_ADDR"] = "node-1.cluster"\ndist.init_process_group(backend="nccl")',
    ],
)
def test_the_ranks_meet_on_this_machine(tmp_path: Path, group: str) -> None:
    ended = ran(tmp_path, f"port = os.environ['MASTER_PORT']\n{group}\nprint(dist.get_world_size(), dist.is_nccl_available())\n")
    assert [r.stdout for r in ended.ranks] == ["2 True\n"] * 2, ended.marked()
    assert any(n.startswith("the ranks meet on this machine in place of ") for n in ended.traces[0].notes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'dist.init_process_group("nccl", world_size=8, rank=rank)',
            "as asked: it makes a group of 8, of 2 processes, at train.py:5: {line}. Give --nproc 8, or let it ask for 2",
        ),
        ('dist.init_process_group("nccl", world_size=1, rank=0)',
         "as asked: it makes a group of 1, of 2 processes, at train.py:5: {line}"),
        (
            "dist.init_process_group('gloo', f'tcp://127.0.0.1:{os.environ[\"MASTER_PORT\"]}', world_size=2, rank=0)",
            "as asked: each process takes itself for rank 0, at train.py:5: {line}. "
            "Where an option of the command gives the rank, write '${{local_rank}}' there",
        ),
    ],
)  # fmt: skip
def test_ranks_that_cannot_meet_are_no_hang_of_the_program(tmp_path: Path, line: str, said: str) -> None:
    ended = ran(tmp_path, f"{line}\n")
    assert obstacle(ended, tmp_path) == Obstacle(said.format(line=line)), ended.marked()
