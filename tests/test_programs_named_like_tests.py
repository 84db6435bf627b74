"""Scripts named `test_x.py` that evaluate a model on several processes, beside a repository's own tests."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from settings import read_options


def worker(rank, args):
    dist.init_process_group("nccl", rank=rank, world_size=args.world_size)
    model = build(args)
    model.load_state_dict(torch.load(args.weights))
    with open("scores.txt", "w") as f:
        f.write(str(args.weights))


if __name__ == "__main__":
    args = read_options()
    mp.spawn(worker, nprocs=args.world_size, args=(args,))
"""


@pytest.mark.parametrize(
    "line",
    [
        "args = settings.parse()",
        "opt = TestOptions().parse()",
        "args = create_arg_parser()",
        "cfg = settings.get_opts()",
    ],
)
def test_options_that_come_from_a_file_of_the_project(line: str) -> None:
    source = PROGRAM.replace("args = read_options()", line).replace("nprocs=args.", f"nprocs={line.split()[0]}.")
    assert findings_of(UnguardedFileIo, source.replace("(args,)", f"({line.split()[0]},)"), path="test_net.py")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/test_net.py", "", ""),  # the folder of the tests
        ("test_net.py", "args = read_options()", "args = Settings(world_size=2)"),  # no options: nobody says what to load
        ("test_net.py", "def worker(", "def test_worker("),  # a framework of tests runs it
        ("test_net.py", 'if __name__ == "__main__":', "if True:"),
        ("test_net.py", "    model.load_state_dict(torch.load(args.weights))\n", ""),  # it tries out what was never trained
    ],
)
def test_tests_of_a_repository(path: str, old: str, new: str) -> None:
    check_nothing(UnguardedFileIo, PROGRAM.replace(old, new) if old else PROGRAM, path=path)
