"""`destroy_process_group` of the parent, where only the workers that it spawns make a process group."""

from __future__ import annotations

import pytest

from codemods.launch.memory_of_each_process import MemoryOfEachProcess
from ddpfix.testing import check_nothing, check_told

HEAD = "import torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
GROUP = """\
def worker(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


def main(size):
    {before}
    mp.spawn(worker, args=(size,), nprocs=size)
    {behind}


if __name__ == "__main__":
    main(2)
"""


def test_the_group_of_the_parent() -> None:
    text = HEAD + GROUP.format(before="pass", behind="dist.destroy_process_group()")
    check_told(MemoryOfEachProcess, text, reason="end of the worker")


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("pass", "if dist.is_initialized():\n        dist.destroy_process_group()"),
        ("pass", "try:\n        dist.destroy_process_group()\n    except AssertionError:\n        pass"),
        ("dist.init_process_group('gloo', rank=0, world_size=1)", "dist.destroy_process_group()"),
        ("worker(0, 1)", "dist.destroy_process_group()"),
        ("from accelerate import Accelerator\n    Accelerator()", "dist.destroy_process_group()"),
        ("pass", "print('done')"),
    ],
)
def test_groups_that_the_parent_may_have(before: str, behind: str) -> None:
    check_nothing(MemoryOfEachProcess, HEAD + GROUP.format(before=before, behind=behind))


SECOND = "pass\n        again(1)\n        mp.spawn(worker, args=(2,), nprocs=2)\n        dist.destroy_process_group()"
MODES = """\
def worker(rank=0, size=1):
    if size > 1:
        dist.init_process_group("gloo", rank=rank, world_size=size)


def again(size):
    return worker(0, size)


def main(args):
    {loop}:
        if args.many:
            mp.spawn(worker, args=(args.size,), nprocs=args.size)
            dist.destroy_process_group()
        else:
            {alone}


if __name__ == "__main__":
    main(parse())
"""


@pytest.mark.parametrize("alone", ["worker(0, args.size)", "worker()", "pass"])
def test_the_other_arm_is_not_the_parents(alone: str) -> None:
    """The process that spawns takes one arm; who imports the file and calls `again` is another program."""
    check_told(MemoryOfEachProcess, HEAD + MODES.format(loop="with timed()", alone=alone), reason="end of the worker")


@pytest.mark.parametrize(
    ("loop", "alone"),
    [
        ("for args.many in args.ways", "worker(0, args.size)"),  # the round before may have made a group
        ("with timed()", SECOND),
    ],
)
def test_what_the_parent_may_come_to(loop: str, alone: str) -> None:
    check_nothing(MemoryOfEachProcess, HEAD + MODES.format(loop=loop, alone=alone))
