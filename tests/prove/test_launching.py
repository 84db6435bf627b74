"""Programs that start their ranks as other programs: torchrun by subprocess or a shell, a Popen for each rank."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ddpfix.prove.on_cpu import obstacle
from ddpfix.prove.ranks import PARENT, Ended
from tests.prove.programs import needs_torch, run

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]

WORK = """\
import argparse, os, sys
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=None)
options = parser.parse_args()
rank = int(os.environ["RANK"]) if options.rank is None else options.rank
torch.cuda.set_device(rank)
if options.rank is None:
    dist.init_process_group("nccl")
else:
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:{port}", rank=rank, world_size=2)
value = torch.full((2,), float(rank), device=f"cuda:{{rank}}")
dist.all_reduce(value)
print(value.tolist(), [k for k in os.environ if k.startswith("DDPFIX_TRACE") or k == "PYTHONPATH"])
dist.destroy_process_group()
{end}
"""
TORCHRUN = f'"{sys.executable}", "-m", "torch.distributed.run", "--nproc_per_node={{n}}", "--master_port={{port}}", "work.py"'
BY_TORCHRUN = f"done = subprocess.run([{TORCHRUN}], env={{{{**os.environ, 'MODE': 'fast'}}}}).returncode"
BY_SHELL = f"done = os.system(' '.join([{TORCHRUN}]))"
EACH = f"""\
started = [subprocess.Popen(["{sys.executable}", "work.py", "--rank", str(i)]) for i in range({{n}})]
done = max(abs(p.wait()) for p in started)"""


def ran(folder: Path, how: str, port: int, *, n: int = 2, end: str = "", spawns: bool = True) -> Ended:
    (folder / "work.py").write_text(WORK.format(port=port, end=end))
    source = f"import os, subprocess, sys\n\n{how.format(n=n, port=port)}\nprint('all done', done)\nsys.exit(bool(done))\n"
    return run(folder, source, swap=True, spawns=spawns, timeout=240)


@pytest.mark.parametrize(("how", "port"), [(BY_TORCHRUN, 29541), (BY_SHELL, 29542), (EACH, 29543)], ids=["run", "shell", "each"])
def test_what_is_started_and_asks_for_a_group_is_a_rank(tmp_path: Path, how: str, port: int) -> None:
    ended = ran(tmp_path, how, port)
    assert ended.outcome == "completes", ended.marked()
    assert [(r.status, r.stdout) for r in ended.ranks] == [(0, "[1.0, 1.0] []\n")] * 2, ended.marked()
    assert [[c.op for c in t.calls] for t in ended.traces] == [["init_process_group", "all_reduce"]] * 2
    assert (PARENT, "stdout", "all done 0") in ended.lines


@pytest.mark.parametrize(("how", "port"), [(BY_TORCHRUN, 29544), (EACH, 29545)], ids=["run", "each"])
def test_how_a_rank_ended_is_known_from_who_started_it(tmp_path: Path, how: str, port: int) -> None:
    ended = ran(tmp_path, how, port, end="sys.exit(3 * rank)")
    assert [r.status for r in ended.ranks] == [0, 3], ended.marked()
    assert ended.outcome == "error"


@pytest.mark.parametrize(("how", "port"), [(BY_TORCHRUN, 29546), (EACH, 29547)], ids=["run", "each"])
def test_run_as_ranks_it_tells_that_it_starts_its_own(tmp_path: Path, how: str, port: int) -> None:
    ended = ran(tmp_path, how, port, spawns=False)
    told = obstacle(ended, tmp_path)
    assert told and told.text.startswith("as asked: it starts 2 ranks itself, at train.py:3: "), ended.marked()


def test_another_number_of_ranks_is_told(tmp_path: Path) -> None:
    told = obstacle(ran(tmp_path, BY_TORCHRUN, 29548, n=3), tmp_path)
    assert told and told.text.startswith("as asked: it starts 3 ranks itself, at train.py:3: done = subprocess.run(")


def test_a_program_that_a_rank_runs_in_its_place_stands_for_it(tmp_path: Path) -> None:
    ended = ran(tmp_path, f'done = subprocess.call(["{sys.executable}", "work.py"])', 0, spawns=False)
    assert ended.outcome == "completes", ended.marked()
    assert [[c.op for c in t.calls] for t in ended.traces] == [["init_process_group", "all_reduce"]] * 2
    assert obstacle(ended, tmp_path) is None
