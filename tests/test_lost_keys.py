"""Keys that rank 0 alone puts into a dict, and where every rank reads them."""

from __future__ import annotations

import pytest

from codemods.ranks.value_of_one_rank import ValueOfOneRank
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch.distributed as dist\n\n\ndef show(row, name):\n    print(row)\n    return row[name]\n\n\n"
MADE = ("row = {'epoch': 1}", "if rank == 0:", "    row['val_loss'] = score(args)", "dist.barrier()")


def script(*lines: str, head: str = HEAD) -> str:
    return head + "def main(args, rank):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "made",
    [
        MADE,
        ("row = {}", "if rank == 0:", "    row.update({'val_loss': 1})"),
        ("row = dict(epoch=1)", "if rank == 0:", "    row.update(val_loss=score(args))"),
        ("row = {}", "if rank == 0:", "    row.update(**{'val_' + k: v for k, v in args.rows})"),
        ("row = {}", "if rank == 0:", "    row.update({f'val_{k}': v for k, v in args.rows})"),
        ("row = {}", "for x in args.rows:", "    row['epoch'] = x", "    if rank == 0:", "        row['val_loss'] = x"),
    ],
)
def test_a_key_that_every_rank_reads(made: tuple[str, ...]) -> None:
    found = check_told(ValueOfOneRank, script(*made, "args.best = row['val_loss']"), reason="on every rank")
    assert "KeyError" in found.message


def test_a_function_that_is_handed_the_dict_reads_the_key() -> None:
    source = script(*MADE, "keep(row)", head=HEAD + "def keep(row):\n    return min(row['val_loss'], 1)\n\n\n")
    found = check_told(ValueOfOneRank, source, reason="on every rank")
    assert "hands this dict on" in found.message and found.span.line == 18


@pytest.mark.parametrize(
    "lines",
    [
        (*MADE, "args.best = row['epoch']"),
        (*MADE, "if rank == 0:", "    args.best = row['val_loss']"),
        (*MADE, "args.best = row.get('val_loss')"),
        (*MADE, "if 'val_loss' in row:", "    args.best = row['val_loss']"),
        (*MADE, "try:", "    args.best = row['val_loss']", "except KeyError:", "    args.best = 1"),
        (*MADE, "row = spread(row)", "args.best = row['val_loss']"),  # another dict
        (*MADE, "dist.broadcast_object_list([row])", "args.best = row['val_loss']"),
        (*MADE, "args.fill(row)", "args.best = row['val_loss']"),  # what it does is not seen
        (*MADE, "args.row = row", "args.best = row['val_loss']"),  # others may fill it there
        (*MADE, "row['val_' + args.name] = 1", "args.best = row['val_loss']"),  # may be the same key
        (*MADE, "row.setdefault('val_loss', 1)", "args.best = row['val_loss']"),
        (*MADE, "row[args.name] = 1", "args.best = row['val_loss']"),
        (*MADE, "row.update(args.more)", "args.best = row['val_loss']"),
        (*MADE, "args.best = row[args.name]"),
        (MADE[0], "if args.late:", *(f"    {m}" for m in MADE[1:3]), "else:", "    row['val_loss'] = 0", "x = row['val_loss']"),
        ("row = args.row", *MADE[1:], "args.best = row['val_loss']"),
        ("row = collections.defaultdict(int)", *MADE[1:], "args.best = row['val_loss']"),
        (*MADE, "def fill():", "    row['val_loss'] = 1", "fill()", "args.best = row['val_loss']"),
        (*MADE, "if args.has_scores:", "    args.best = row['val_loss']"),  # may be of rank 0 alone
        ("row = {'val_loss': 0}", *MADE[1:], "args.best = row['val_loss']"),
    ],
)
def test_keys_that_the_others_may_have_or_do_not_read(lines: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*lines))


LOOP = """\
from abc import abstractmethod

from accelerate import Accelerator


class Base:
    def __init__(self, args):
        self.accelerator = Accelerator()
        self.watched = "val_" + args.watched

    @abstractmethod
    def epoch(self, number):
        raise NotImplementedError

    def train(self, epochs):
        for number in range(epochs):
            result = self.epoch(number)
            row = {"epoch": number}
            row.update(result)
            self.keep(row)

    def keep(self, row):
        self.best = min(self.best, row[self.watched])


class Loop(Base):
    def epoch(self, number):
        row = {"train_loss": self.step()}
        if self.accelerator.is_main_process:
            row.update({"val_" + name: value for name, value in self.score()})
        return row
"""


def test_a_result_that_an_heir_gives_the_main_process_alone() -> None:
    found = check_told(ValueOfOneRank, LOOP, reason="on every rank")
    assert found.span.line == 20 and "module.py:23" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"val_" + args.watched', '"train_" + args.watched'),
        ('"val_" + args.watched', "args.watched"),  # any key
        ("row.update(result)", "row.update(result)\n            self.fill(row)"),
        ("            self.keep(row)", "            if self.accelerator.is_main_process:\n                self.keep(row)"),
        ("        return row\n", "        return self.spread(row)\n"),
        ("class Loop(Base):", "class Other(Base):\n    def epoch(self, number):\n        return {}\n\n\nclass Loop(Base):"),
    ],
)
def test_results_that_are_fine_or_not_known(old: str, new: str) -> None:
    assert old in LOOP
    assert not [f for f in findings_of(ValueOfOneRank, LOOP.replace(old, new)) if "KeyError" in f.message]
