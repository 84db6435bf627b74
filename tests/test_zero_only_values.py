"""A value of a method under `rank_zero_only` is None on the other ranks: a test for it lets rank 0 alone in."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
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
