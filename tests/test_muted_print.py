"""Streams that the other ranks lead away: what they print, and the bars they draw, appear nowhere."""

from __future__ import annotations

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

RUN = {"run.sh": "torchrun --nproc_per_node=4 module.py\n"}
PROGRAM = """\
import os
import sys

import torch.distributed as dist
from tqdm import tqdm


def main(rows):
    MUTE
    dist.init_process_group("nccl")
    print("training begins")
    for row in tqdm(rows):
        step(row)


if __name__ == "__main__":
    main(read())
"""


def program(*lines: str) -> str:
    return PROGRAM.replace("MUTE", "\n    ".join(lines))


@pytest.mark.parametrize("test", ['int(os.environ["LOCAL_RANK"]) != 0', 'int(os.environ["RANK"]) > 0'])
def test_both_streams_of_the_others_go_nowhere(test: str) -> None:
    lines = (f"if {test}:", "    sys.stdout = sys.stderr = open(os.devnull, 'w')")
    check_nothing(UnguardedPrint, program(*lines), files=RUN)
    check_nothing(ProgressBarOnEveryRank, program(*lines), files=RUN)
    named = (f"if {test}:", "    quiet = open(os.devnull, 'w')", "    sys.stdout = quiet")
    check_nothing(UnguardedPrint, program(*named), files=RUN)
    assert findings_of(ProgressBarOnEveryRank, program(*named), RUN)  # bars go to the standard error


def test_each_rank_has_a_file() -> None:
    check_nothing(UnguardedPrint, program("rank = os.environ['RANK']", "sys.stdout = open(f'out-{rank}.txt', 'w')"), files=RUN)


@pytest.mark.parametrize(
    "lines",
    [
        ("sys.stdout = open(os.devnull, 'w')",),  # nobody prints, so that nobody would write such a program
        ("if rows:", "    sys.stdout = open(os.devnull, 'w')"),
        ("if int(os.environ['RANK']) == 0:", "    sys.stdout = open('log.txt', 'w')"),
        ("sys.stdout = Tee('log.txt')",),
    ],
)
def test_streams_that_the_others_keep(lines: tuple[str, ...]) -> None:
    assert findings_of(UnguardedPrint, program(*lines), RUN)
