"""Collections of objects of one class: what a method that goes through them comes to."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from ddpfix.testing import check_nothing, check_told

METER = """
from collections import defaultdict

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.sum, self.seen = 0.0, 0

    def put(self, x):
        self.sum, self.seen = self.sum + x, self.seen + 1

    def pool(self):
        if not dist.is_initialized():
            return
        both = torch.tensor([self.sum, self.seen])
        dist.all_reduce(both)
        self.sum, self.seen = both.tolist()


class Gauge:
    def pool(self):
        return self


"""
BOARD = """
class Board:
    def __init__(self):
        self.meters = {made}

    def add(self, name, meter):
        self.meters[name] = meter

    def settle(self):
        {settle}
"""
RUN = """
import torch.distributed as dist
import tools


def score(rows):
    board = tools.Board()
    for row in rows:
        print(row)
    board.settle()
    return board


def main(rows):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        score(rows)
"""
PARTS = {"tools/__init__.py": "from .boards import *\n"}


def files(made: str, settle: str, before: str = "") -> dict[str, str]:
    return {**PARTS, "tools/boards.py": METER + before + BOARD.format(made=made, settle=settle)}


FOUND = {
    "made where it is missing": ("defaultdict(Meter)", "for meter in self.meters.values():\n            meter.pool()"),
    "with its key": ("defaultdict(lambda: Meter())", "for name, meter in self.meters.items():\n            meter.pool()"),
    "written out": ("{'loss': Meter(), 'top': Meter()}", "for name, m in sorted(self.meters.items()):\n            m.pool()"),
    "a list": ("[Meter() for _ in range(3)]", "for meter in self.meters:\n            meter.pool()"),
    "a list with its number": ("[Meter(), Meter()]", "for at, meter in enumerate(self.meters):\n            meter.pool()"),
    "by its key": ("{'loss': Meter()}", "for name in self.meters:\n            self.meters[name].pool()"),
    "in a comprehension": ("[Meter()]", "return [meter.pool() for meter in self.meters]"),
}


@pytest.mark.parametrize("made", FOUND)
def test_the_objects_wait_in_a_method(made: str) -> None:
    check_told(CollectiveUnderRankGuard, RUN, reason="", files=files(*FOUND[made]))


def test_behind_an_early_exit() -> None:
    guarded = "    if dist.get_rank() == 0:\n        score(rows)\n"
    left = RUN.replace(guarded, "    if dist.get_rank() != 0:\n        return\n    score(rows)\n")
    check_told(EarlyReturnBeforeCollective, left, reason="", files=files(*FOUND["with its key"]))


def test_the_objects_are_put_there_later() -> None:
    later = "def start(self):\n        self.meters['x'] = Meter()"
    settle = f"for meter in self.meters.values():\n            meter.pool()\n\n    {later}"
    check_told(CollectiveUnderRankGuard, RUN, reason="", files=files("{}", settle))


SILENT = {
    "objects of another class": ("defaultdict(Gauge)", "for meter in self.meters.values():\n            meter.pool()"),
    "objects of two classes": ("{'a': Meter(), 'b': Gauge()}", "for meter in self.meters.values():\n            meter.pool()"),
    "the keys": ("defaultdict(Meter)", "for meter in self.meters:\n            meter.pool()"),
    "the numbers": ("[Meter()]", "for meter, at in enumerate(self.meters):\n            meter.pool()"),
    "names of another collection": (
        "[Meter()]",
        "for meter in self.meters:\n            print(meter)\n        for meter in rows():\n            meter.pool()",
    ),
    "a method that waits for nobody": ("[Meter()]", "for meter in self.meters:\n            meter.put(1)"),
    "nobody knows what": ("fill()", "for meter in self.meters.values():\n            meter.pool()"),
}  # fmt: skip


@pytest.mark.parametrize("made", SILENT)
def test_right_or_not_seen(made: str) -> None:
    check_nothing(CollectiveUnderRankGuard, RUN, files=files(*SILENT[made]))


def test_every_rank_comes() -> None:
    everybody = RUN.replace("    if dist.get_rank() == 0:\n        score(rows)\n", "    score(rows)\n")
    check_nothing(CollectiveUnderRankGuard, everybody, files=files(*FOUND["a list"]))


def test_one_process_alone() -> None:
    alone = RUN.replace("if dist.get_rank() == 0:", "if not dist.is_initialized():")
    check_nothing(CollectiveUnderRankGuard, alone, files=files(*FOUND["a list"]))
