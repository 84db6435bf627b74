"""Programs of one process: a switch that the script turns off for good, a group of one that tries a class out."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

SCRIPT = """
import argparse

import torch.distributed as dist


def main(args):
    rank = dist.get_rank() if args.distribution else 0
    if args.distribution:
        dist.init_process_group("nccl")
    print("training begins")
    if rank == 0:
        print("as rank 0")


if __name__ == "__main__":
    args = argparse.ArgumentParser().parse_args()
    SWITCH
    main(args)
"""


RUN = {"run.sh": "torchrun --nproc_per_node=4 module.py\n"}


def test_a_switch_that_the_script_turns_off() -> None:
    assert findings_of(UnguardedPrint, SCRIPT.replace("SWITCH", "args.seed = 1"), RUN)
    check_nothing(UnguardedPrint, SCRIPT.replace("SWITCH", "args.distribution = False  # not ready"), files=RUN)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("args.distribution = False\n    args.distribution = args.gpus > 1", {}),
        ("if args.cpu:\n        args.distribution = False", {}),
        ("args.distribution = False", {"setup.py": "def start(args):\n    args.distribution = True\n"}),
        ("args.distribution = False", {"setup.py": "def start(args):\n    setattr(args, 'distribution', True)\n"}),
        ("args.resume = False", {}),
    ],
)
def test_a_switch_that_something_turns_on_again(line: str, files: dict[str, str]) -> None:
    assert findings_of(UnguardedPrint, SCRIPT.replace("SWITCH", line), {**RUN, **files})


TRIED = """
import os

import torch.distributed as dist


class Rows:
    def __init__(self):
        self.rank = dist.get_rank()


if __name__ == "__main__":
    dist.init_process_group("gloo", rank=RANK, world_size=SIZE)
    rows = Rows()
    print("made")
"""


def test_a_group_of_one_process() -> None:
    check_nothing(UnguardedPrint, TRIED.replace("SIZE", "1").replace("RANK", "0"))
    assert findings_of(UnguardedPrint, TRIED.replace("SIZE", "2").replace("RANK", "int(os.environ['RANK'])"))


TABLE = """
import pandas as pd
import torch.distributed as dist


def main(rows):
    dist.init_process_group("gloo")
    pd.DataFrame(rows).to_csv("rows.csv", MODE)


if __name__ == "__main__":
    main([])
"""


def test_rows_that_are_added_to_a_table_overwrite_nothing() -> None:
    assert any("overwrite" in f.message for f in findings_of(UnguardedFileIo, TABLE.replace("MODE", "index=False")))
    assert not [f for f in findings_of(UnguardedFileIo, TABLE.replace("MODE", "mode='a'")) if f.applicability.value == "display"]
