"""Blocks in which the other ranks are quiet: `with Quiet(rank):`, and the functions that are called in one."""

from __future__ import annotations

import textwrap

import pytest

from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

TASK = """\
import os

import torch.distributed as dist
from tqdm import tqdm


class Fitting:
    def fit(self, rows):
        rank = dist.get_rank()
        print("fitting begins")
        self.note()
        for row in tqdm(rows):
            step(row, rank)

    def note(self):
        rank = dist.get_rank()
        print("a note")
        keep(rank)
"""
RUN = """\
import contextlib
import os
from contextlib import nullcontext, redirect_stdout

import torch.distributed as dist

from module import Fitting
from quiet import Quiet, hushed

if __name__ == "__main__":
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    MADE
    BEFORE
    with ENTERED:
        Fitting().fit(read())
"""
QUIET = """\
import os
import sys
from contextlib import contextmanager, redirect_stdout


class Quiet:
    def __init__(self, rank, quiet=False, path=os.devnull):
        self.rank = rank
        self.quiet = quiet
        self.path = path

    def __enter__(self):
        BODY
        return self

    def __exit__(self, *error):
        sys.stdout = sys.__stdout__


@contextmanager
def hushed(quiet):
    FUNCTION
"""
EARLY = "if self.rank == 0:\n    return self\nself.kept = sys.stdout\nsys.stdout = open(os.devnull, 'w')"
TOLD = "if self.quiet:\n    sys.stdout = open(os.devnull, 'w')"
TURNED = "if not self.quiet:\n    return self\nsys.stdout = open(os.devnull, 'w')"
BEFORE_YIELD = "kept = sys.stdout\nif quiet:\n    sys.stdout = open(os.devnull, 'w')\nyield\nsys.stdout = kept"
ROUND_YIELD = "if quiet:\n    with redirect_stdout(open(os.devnull, 'w')):\n        yield\nelse:\n    yield"
LEAVES = "if not quiet:\n    yield\n    return\nwith redirect_stdout(open(os.devnull, 'w')):\n    yield"
LEFT = "redirect_stdout(open(os.devnull, 'w'))"


def files(
    entered: str, *, body: str = EARLY, function: str = "yield", before: str = "pass", made: str = "pass"
) -> dict[str, str]:
    run = RUN.replace("ENTERED", entered).replace("BEFORE", before).replace("MADE", made)
    quiet = QUIET.replace("BODY", textwrap.indent(body, " " * 8).lstrip()).replace(
        "FUNCTION", textwrap.indent(function, " " * 4).lstrip()
    )
    return {"start.py": run, "quiet.py": quiet, "start.sh": "torchrun --nproc_per_node=4 start.py\n"}


@pytest.mark.parametrize(
    "given",
    [
        files("Quiet(int(os.environ['LOCAL_RANK']))"),
        files("manager", made="manager = Quiet(rank)"),
        files("Quiet(rank, quiet=rank != 0)", body=TOLD),
        files("Quiet(0, rank > 0)", body=TURNED),
        files("hushed(rank != 0)", function=BEFORE_YIELD),
        files("hushed(quiet=rank > 0)", function=ROUND_YIELD),
        files("hushed(rank != 0)", function=LEAVES),
        files(f"{LEFT} if rank != 0 else nullcontext()"),
        files(f"nullcontext() if rank == 0 else contextlib.{LEFT}"),
    ],
)
def test_the_others_are_quiet_in_the_block(given: dict[str, str]) -> None:
    check_nothing(UnguardedPrint, TASK, files=given)
    assert findings_of(ProgressBarOnEveryRank, TASK, given)  # bars go to the standard error


@pytest.mark.parametrize(
    "given",
    [
        files("Quiet(rank)", body="pass"),
        files("Quiet(rank)", body="self.kept = sys.stdout"),
        files("Quiet(rank)", body="if self.rank == 0:\n    sys.stdout = open('log.txt', 'w')"),
        files("Quiet(rank, quiet=bool(os.environ.get('Q')))", body=TOLD),
        files("Quiet(rank, quiet=rank == 0)", body=TOLD),  # rank 0 is the quiet one
        files("Quiet(rank)", body=TOLD),
        files("hushed(os.environ.get('Q'))", function=BEFORE_YIELD),
        files("hushed(rank == 0)", function=ROUND_YIELD),
        files("hushed(rank == 0)", function=LEAVES),
        files("hushed(rank != 0)", function="yield\nif quiet:\n    sys.stdout = open(os.devnull, 'w')"),
        files(f"{LEFT} if os.environ.get('Q') else nullcontext()"),
        files(f"{LEFT} if rank == 0 else nullcontext()"),
        files("Quiet(rank)", before="Fitting().fit(read())"),  # called outside of it, too
    ],
)
def test_streams_that_the_others_keep(given: dict[str, str]) -> None:
    assert findings_of(UnguardedPrint, TASK, given)


def test_a_block_that_stands_round_the_print_alone() -> None:
    part = """\
import torch.distributed as dist

from quiet import Quiet


def fit(rows):
    rank = dist.get_rank()
    PRINT
    with Quiet(rank):
        print("fitting begins")
        step(rows)
    keep(rank)


fit(read())
"""
    given = files("Quiet(rank)") | {"start.sh": "torchrun --nproc_per_node=4 module.py\n"}
    check_nothing(UnguardedPrint, part.replace("PRINT", "pass"), files=given)
    assert [f.span.line for f in findings_of(UnguardedPrint, part.replace("PRINT", "print('before')"), given)] == [8]


def test_bars_follow_the_standard_error() -> None:
    both = "if self.rank != 0:\n    sys.stdout = sys.stderr = open(os.devnull, 'w')"
    check_nothing(ProgressBarOnEveryRank, TASK, files=files("Quiet(rank)", body=both))
    assert findings_of(ProgressBarOnEveryRank, TASK, files("Quiet(rank, rank != 0)", body=TOLD))
