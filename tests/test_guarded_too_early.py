"""Files under a test for rank 0 that asks torch.distributed above the start of the group."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, check_told

SCRIPT = """\
import logging
import os
import time
import torch
import torch.distributed as dist
from accelerate import Accelerator


def rank_and_world():
    {helper}


def make_logger(path):
    log = logging.getLogger("work")
    rank, _ = rank_and_world()
    if rank != 0:
        log.setLevel("ERROR")
    elif path is not None:
        log.addHandler(logging.FileHandler(path, "{mode}"))
    return log


def main(args):
    {above}
    {call}
    {below}
    log.info(args)


if __name__ == "__main__":
    main(None)
"""
RANK = """if dist.is_available() and dist.is_initialized():
        rank, world = dist.get_rank(), dist.get_world_size()
    else:
        rank = 0
        world = 1
    return rank, world"""


def script(
    *, helper: str = RANK, mode: str = "w", above: str = "pass", call: str = "log = make_logger(args.log)",
    below: str = "accelerator = Accelerator()",
) -> str:  # fmt: skip
    return SCRIPT.format(helper=helper, mode=mode, above=above, call=call, below=below)


@pytest.mark.parametrize("below", ["accelerator = Accelerator()", "dist.init_process_group('nccl')"])
def test_a_logger_above_the_start_is_told(below: str) -> None:
    found = check_told(UnguardedFileIo, script(below=below), reason="move the call below that")
    assert "takes itself for rank 0" in found.message
    assert found.span.line == 30


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (script(above="accelerator = Accelerator()", below="pass"), "the group is there"),
        (script(above="dist.init_process_group('nccl')"), "the group is there, and Accelerate joins it"),
        (script(above="setup_ranks(args)"), "that may start the group"),
        (script(below="pass"), "nobody is seen to start a group below"),
        (script(mode="a"), "lines are added"),
        (script(helper='return int(os.environ.get("RANK", 0)), 1'), "the launcher's rank is known from the start"),
        (script(helper=RANK.replace("rank = 0", "rank = -1")), "without a group nobody writes"),
        (script(call="log = make_logger(time.strftime('%H%M%S.txt'))"), "each process has a file of its own"),
        (script(call="log = make_logger(f'log_{os.getpid()}.txt')"), "each process has a file of its own"),
    ],
)
def test_loggers_that_are_no_matter(source: str, why: str) -> None:
    check_nothing(UnguardedFileIo, source)


def test_one_of_two_calls_stands_below_the_start() -> None:
    both = "accelerator = Accelerator()\n    log = make_logger(args.log)"
    check_nothing(UnguardedFileIo, script(below=both))
