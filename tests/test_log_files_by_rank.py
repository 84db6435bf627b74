"""A log that each rank keeps in a file of its own: its lines are no repetition."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_hook import UnguardedHook
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

LOOP = """\
import logging
import torch.distributed as dist


class Loop:
    def __init__(self, rank):
        self.log = logging.getLogger("loop")
        self.rank = rank

    def run(self, steps):
        if self.rank == 0:
            self.log.info("begins")
        dist.barrier()
        self.log.info("%s steps", steps)


def work(rank):
    dist.init_process_group("gloo")
    Loop(dist.get_rank()).run(7)
"""
HOOK = """\
import logging
import lightning.pytorch as pl

log = logging.getLogger(__name__)
logging.basicConfig(level=logging.INFO)


class Told(pl.Callback):
    def on_train_start(self, trainer, pl_module):
        log.info("start")
"""
# A helper opens what its caller names.
HELPER = """\
import logging
import sys


def prepare(filename=None, on_screen=True):
    root = logging.getLogger()
    if on_screen:
        root.addHandler(logging.StreamHandler(sys.stdout))
    if filename is not None:
        root.addHandler(logging.FileHandler(filename))
"""
CALLER = """\
import torch.distributed as dist
from helper import prepare


def start(folder, node):
    target = folder / f"NAME.txt"
    prepare(on_screen=dist.get_rank() == 0, filename=target)
"""
START = """\
import logging, loguru
import logging.handlers
import torch.distributed as dist
from loguru import logger


class Log:
    def __init__(self, folder, rank, day):
        self.path = f"{folder}/part{rank}.log"
        self.rank = rank

    def open(self):
        LINE
"""


@pytest.mark.parametrize("name", ["log_{node}_{dist.get_rank()}", "log_{os.environ['LOCAL_RANK']}"])
def test_a_file_that_the_caller_names_by_the_rank(name: str) -> None:
    files = {"helper.py": HELPER, "start.py": "import os\n" + CALLER.replace("NAME", name)}
    check_nothing(UnguardedPrint, LOOP, files=files)
    check_nothing(UnguardedHook, HOOK, files=files)


@pytest.mark.parametrize("name", ["log_{node}", "log"])
def test_a_file_that_all_ranks_share(name: str) -> None:
    files = {"helper.py": HELPER, "start.py": CALLER.replace("NAME", name)}
    assert findings_of(UnguardedPrint, LOOP, files=files)
    assert findings_of(UnguardedHook, HOOK, files=files)


@pytest.mark.parametrize(
    "line",
    [
        "logging.getLogger().addHandler(logging.FileHandler(self.path))",
        "logging.getLogger().addHandler(logging.handlers.RotatingFileHandler(filename=f'{self.rank}.log'))",
        "logging.basicConfig(level=20, filename='run-%d.log' % self.rank)",
        "logger.add(self.path)",
    ],
)
def test_handlers_that_open_a_file_by_its_name(line: str) -> None:
    check_nothing(UnguardedPrint, LOOP, files={"start.py": START.replace("LINE", line)})


@pytest.mark.parametrize(
    "line",
    [
        "logging.getLogger().addHandler(logging.FileHandler('all.log'))",
        "logging.getLogger().addHandler(logging.StreamHandler(self.path))",
        "logging.basicConfig(level=20, format=f'{self.rank}')",
        "self.found.add(self.path)",
    ],
)
def test_what_opens_no_file_of_each_rank(line: str) -> None:
    assert findings_of(UnguardedPrint, LOOP, files={"start.py": START.replace("LINE", line)})


def test_a_file_of_rank_zero_alone() -> None:
    line = "logging.getLogger().addHandler(logging.FileHandler(self.path))"
    level = "\n        logging.basicConfig(level=20)"
    guarded = f"if dist.get_rank() == 0:\n            {line}{level}"
    assert findings_of(UnguardedPrint, LOOP, files={"start.py": START.replace("LINE", guarded)})


def test_what_is_printed_goes_to_no_log_file() -> None:
    printed = LOOP.replace('self.log.info("%s steps", steps)', 'print("steps", steps)')
    files = {"start.py": START.replace("LINE", "logging.basicConfig(filename=self.path)")}
    assert findings_of(UnguardedPrint, printed, files=files)
