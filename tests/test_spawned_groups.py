"""A file that starts a function on several processes, where another file starts their process group."""

from __future__ import annotations

import pytest

from codemods.ranks.makedirs_race import MakedirsRace
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.sync.swallowed_by_one_rank import SwallowedByOneRank
from ddpfix.testing import check_nothing, check_transformed, findings_of

PROGRAM = """\
import os
import shutil
import traceback

import torch.multiprocessing as mp

from loop import run


def main(rank=None, count=1, options=None):
    if not os.path.exists(options.folder):
        os.makedirs(options.folder)
    try:
        run(rank, count, options)
    except Exception:
        traceback.print_exc()
        shutil.rmtree(options.kept)


if __name__ == "__main__":
    mp.spawn(main, args=(2, None), nprocs=2)
"""
LOOP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def start(rank, count):
    dist.init_process_group("gloo", rank=rank, world_size=count)


def run(rank, count, options):
    start(rank, count)
    net = DistributedDataParallel(options.net)
    for batch in options.batches:
        dist.barrier()
        net(batch).sum().backward()
"""
FILES = {"loop.py": LOOP}


def test_a_folder_that_each_started_process_makes() -> None:
    test = "    if not os.path.exists(options.folder):\n        os.makedirs(options.folder)\n"
    after = PROGRAM.replace(test, "    os.makedirs(options.folder, exist_ok=True)\n")
    check_transformed(MakedirsRace, PROGRAM, after, files=FILES)


def test_an_error_that_a_started_process_swallows() -> None:
    after = PROGRAM.replace("rmtree(options.kept)\n", "rmtree(options.kept)\n        raise\n")
    check_transformed(SwallowedByOneRank, PROGRAM, after, unsafe=True, files=FILES)


def test_what_is_done_behind_an_error_is_not_done_by_every_rank() -> None:
    check_nothing(UnguardedFileIo, PROGRAM, files=FILES)
    before_the_work = PROGRAM.replace("    try:\n", "    shutil.rmtree(options.kept)\n    try:\n")
    assert findings_of(UnguardedFileIo, before_the_work, FILES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nprocs=2)", "nprocs=1)"),
        (", nprocs=2)", ")"),  # one process
        ("mp.spawn(main, args=(2, None), nprocs=2)", "main(0, 1, None)"),
        ("import torch.multiprocessing as mp", "import pool as mp"),
        ("from loop import run", "from alone import run"),
        ("mp.spawn(main,", "mp.spawn(others().main,"),
    ],
)
def test_programs_that_are_not_seen_to_start_ranks(old: str, new: str) -> None:
    assert old in PROGRAM
    files = {**FILES, "alone.py": "def run(rank, count, options):\n    options.fill(rank)\n"}
    for codemod in (MakedirsRace, SwallowedByOneRank):
        check_nothing(codemod, PROGRAM.replace(old, new), files=files)


def test_the_folder_is_there_before_the_start() -> None:
    test = "    if not os.path.exists(options.folder):\n        os.makedirs(options.folder)\n"
    source = PROGRAM.replace(test, "").replace("    mp.spawn(", f"{test}    mp.spawn(")
    check_nothing(MakedirsRace, source, files=FILES)
