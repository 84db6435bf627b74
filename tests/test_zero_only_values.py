"""A value of a method under `rank_zero_only` is None on the other ranks: a test for it lets rank 0 alone in."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from ddpfix.testing import check_nothing, findings_of

SOURCE = """\
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only


class Notes(pl.Callback):
    def __init__(self):
        self.ready = None

    DECORATOR
    def _known(self, trainer):
        return trainer.logger is not None

    def setup(self, trainer, pl_module, stage):
        self.ready = GIVEN

    def on_fit_end(self, trainer, pl_module):
        notes = self._known(trainer)
        self.prune(trainer)
        TEST
            self.count += 1
            open("notes.txt", "w").write("noted")
"""


def source(test: str, *, decorator: str = "@rank_zero_only", given: str = "self._known(trainer)") -> str:
    return SOURCE.replace("TEST", test).replace("DECORATOR", decorator).replace("GIVEN", given)


TESTS = [
    "if self.ready:",
    "if self.ready is not None:",
    "if notes:",
    "if notes is not None and trainer.max_epochs > 1:",
    "if self._known(trainer):",
    "if (kept := self._known(trainer)) is not None:",
    "if notes is None:\n            return\n        if trainer.max_epochs:",
    "if not notes:\n            return\n        if trainer.max_epochs:",
]


@pytest.mark.parametrize("test", TESTS)
def test_what_stands_under_a_test_for_the_value_is_of_rank_zero(test: str) -> None:
    check_nothing(UnguardedFileIo, source(test))


def test_one_that_is_chosen_by_it() -> None:
    check_nothing(UnguardedFileIo, source("if self.ready:", given="True if self._known(trainer) else False"))


@pytest.mark.parametrize("test", TESTS[:5])
@pytest.mark.parametrize("decorator", ["@staticmethod", "@shared_by_rank_zero", "@torch.no_grad()"])
def test_without_the_decorator_every_rank_may_have_a_value(test: str, decorator: str) -> None:
    made = "def shared_by_rank_zero(function):\n    return function\n\n\n"
    assert findings_of(UnguardedFileIo, made + source(test, decorator=decorator).replace("@staticmethod", ""))


@pytest.mark.parametrize("test", ["if trainer.max_epochs:", "if self.told:"])
def test_another_test_lets_every_rank_in(test: str) -> None:
    assert findings_of(UnguardedFileIo, source(test))


def test_a_field_that_every_rank_is_given_as_well() -> None:
    given = "self._known(trainer)\n        self.ready = bool(trainer.loggers)"
    assert findings_of(UnguardedFileIo, source("if self.ready:", given=given))


def test_a_collective_under_such_a_test_waits_for_ever() -> None:
    waiting = source("if notes is not None:").replace('self.count += 1', "trainer.strategy.barrier()")
    assert findings_of(CollectiveUnderRankGuard, waiting)


# What is made for rank 0 alone

MADE = """\
import torch
import torch.distributed as dist


def collected(rows, rank):
    parts = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object(rows, parts, dst=0)
    return parts


def read_by_zero(names):
    if dist.get_rank() == 0:
        return [open(n).read() for n in names]


def told_to_zero(names):
    if dist.get_rank() != 0:
        return None
    found = [n for n in names]
    return found


class Log:
    def __init__(self, rank):
        self.board = None
        if rank == 0:
            self.board = open("board.txt", "w")

    def add(self, rows):
        LINES


def main(rows, names):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    Log(rank).add(rows)
    BODY


main(torch.ones(3), [])
"""


def made(*lines: str, in_class: bool = False) -> str:
    body, method = ("pass", "\n        ".join(lines)) if in_class else ("\n    ".join(lines), "pass")
    return MADE.replace("LINES", method).replace("BODY", body)


BEHIND = [
    ("parts = collected(rows, rank)", "if parts is None:", "    return", "OUT"),
    ("parts = collected(rows, rank)", "if parts is not None:", "    OUT"),
    ("if read_by_zero(names) is not None:", "    OUT"),
    ("texts = told_to_zero(names)", "if not texts:", "    return", "OUT"),
    ("best = None", "if rank == 0:", "    best = torch.ones(3)", "if best is None:", "    return", "OUT"),
    ("best, last = None, None", "if rank == 0:", "    best, last = rows, 2", "if last:", "    OUT"),
    ("parts = [] if rank == 0 else None", "dist.gather_object(rows, parts)", "if parts is None:", "    return", "OUT"),
]
SHARED = [
    ("best = None", "if rank == 0:", "    best = rows", "else:", "    best = names", "if best is not None:", "    OUT"),
    ("best = None", "if rank == 0:", "    best = rows", "best = comm(best)", "if best is not None:", "    OUT"),
    ("best = None", "if len(names) > 2:", "    best = rows", "if best is not None:", "    OUT"),
    ("best = names if len(names) > 2 else None", "if best is None:", "    return", "OUT"),
]


@pytest.mark.parametrize("lines", BEHIND)
def test_what_others_do_not_have_keeps_them_out(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedFileIo, made(*(one.replace("OUT", 'open("out.txt", "w").write("a")') for one in lines)))
    hang = made(*(one.replace("OUT", "dist.all_reduce(rows)") for one in lines))
    found = [*findings_of(CollectiveUnderRankGuard, hang), *findings_of(EarlyReturnBeforeCollective, hang)]
    assert [f.span.line for f in found] == [hang[: hang.index("dist.all_reduce(rows)")].count("\n") + 1]


@pytest.mark.parametrize("lines", SHARED)
def test_what_every_rank_may_have_keeps_nobody_out(lines: tuple[str, ...]) -> None:
    found = findings_of(UnguardedFileIo, made(*(one.replace("OUT", 'open("out.txt", "w").write("a")') for one in lines)))
    assert len(found) == 1
    hang = made(*(one.replace("OUT", "dist.all_reduce(rows)") for one in lines))
    assert not [*findings_of(EarlyReturnBeforeCollective, hang)]


def test_a_field_that_rank_zero_alone_is_given() -> None:
    lines = ("if self.board is None:", "    return", "OUT")
    check_nothing(UnguardedFileIo, made(*(one.replace("OUT", 'open("a.txt", "w").write("a")') for one in lines), in_class=True))
    hang = made(*(one.replace("OUT", "dist.all_reduce(rows)") for one in lines), in_class=True)
    assert len(findings_of(EarlyReturnBeforeCollective, hang)) == 1


def test_a_field_that_a_method_gives_every_rank() -> None:
    source = made("self.board = rows", "if self.board is None:", "    return", "dist.all_reduce(rows)", in_class=True)
    check_nothing(EarlyReturnBeforeCollective, source)
