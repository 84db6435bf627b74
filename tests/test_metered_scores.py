"""DDP605: scores of an evaluation that a logger of meters adds up over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told

WHY = "share without padding"

METERS = """\
import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    def combine(self):
        both = torch.tensor([self.total, self.count], device="cuda")
        dist.all_reduce(both)
        self.total, self.count = both.tolist()


class Board:
    def __init__(self):
        self.meters = {}

    def update(self, **values):
        for key, value in values.items():
            self.meters.setdefault(key, Meter()).update(value)

    def put(self, key, value):
        self.meters[key].update(value)

    def combine_all(self):
        for meter in self.meters.values():
            meter.combine()
"""

RUN = """\
import torch
from torch.utils.data import DataLoader, DistributedSampler

import meters


@torch.no_grad()
def evaluate(model, loader):
    board = meters.Board()
    for x, y in loader:
        out = model(x)
        acc = (out.argmax(1) == y).float().mean()
        {put}
    {behind}
    return board


def main(model, data):
    loader = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))
    print(evaluate(model, loader))
"""
ALL = "board.combine_all()"


def run(put: str, behind: str = ALL) -> str:
    return RUN.format(put=put, behind=behind)


@pytest.mark.parametrize(
    "put",
    [
        "board.update(loss=model.loss(out, y), val_acc=acc)",
        "board.update_one('top1', acc)",
        "board.meters['acc1'].update(acc, n=len(x))",
        "board['mIoU'].update(acc)",
        "board.psnr.update(acc)",
    ],
)
def test_scores_that_a_logger_adds_up(put: str) -> None:
    check_told(GatheredDuplicates, run(put), reason=WHY, files={"meters.py": METERS})


@pytest.mark.parametrize(
    ("put", "behind"),
    [
        ("board.update(loss=model.loss(out, y), time=1)", ALL),  # losses alone
        ("board.update(acc_loss=acc)", ALL),
        ("board.update(acc=acc)", "print(board)"),
        ("other.update(acc=acc)", ALL),  # another logger
        ("board.fetch('acc')", ALL),
        ("board.update(acc=acc)", "other.combine_all()"),
    ],
)
def test_other_meters(put: str, behind: str) -> None:
    check_nothing(GatheredDuplicates, run(put, behind), files={"meters.py": METERS})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dist.all_reduce(both)", "both = both.cpu()"),
        ("meter.combine()", "meter.update(0.0, 0)"),
        ("in self.meters.values()", "in Meter.made"),
    ],
)
def test_meters_that_do_not_come_together(old: str, new: str) -> None:
    assert old in METERS
    check_nothing(GatheredDuplicates, run("board.update(acc=acc)"), files={"meters.py": METERS.replace(old, new)})


def test_a_score_of_the_whole_share() -> None:
    """Put in behind the loop: another codemod tells of the mean of the ranks' scores."""
    check_nothing(GatheredDuplicates, run("pass", f"board.update(acc=1.0); {ALL}"), files={"meters.py": METERS})


def test_meters_of_a_class_that_holds_them_in_a_field() -> None:
    source = run("self.board.update(acc=acc)", "self.board.combine_all()").replace("    board = meters.Board()\n", "")
    source = source.replace("def evaluate(model,", "def evaluate(self, model,").replace("return board", "return self.board")
    body = source[source.index("@torch.no_grad()") : source.index("def main")]
    inside = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    init = "class Run:\n    def __init__(self):\n        self.board = meters.Board()\n\n"
    source = source.replace(body, init + inside).replace("print(evaluate(model", "print(Run().evaluate(model")
    check_told(GatheredDuplicates, source, reason=WHY, files={"meters.py": METERS})
