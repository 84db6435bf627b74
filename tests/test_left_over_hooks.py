"""A hook that calls a field which nothing sets is left over in a base class: what is said of it is not sure."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import findings_of

BASE = """\
import lightning.pytorch as pl


class Base(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("val_loss", loss)
        {called}
        self.log("val_acc", self.val_acc, on_step=False)
"""
HEIR = """\
import lightning.pytorch as pl
from base import Base


class Heir(Base):
    def __init__(self):
        super().__init__()
        {sets}

    def loss(self, batch):
        return batch.sum()


def main():
    pl.Trainer(devices=4).fit(Heir())


if __name__ == "__main__":
    main()
"""


def level(called: str, sets: str) -> Applicability:
    found = findings_of(UnsyncedMetric, BASE.format(called=called), files={"heir.py": HEIR.format(sets=sets)}, path="base.py")
    first = next(f for f in found if f.span.line == 7)
    assert first.fix is not None
    if first.fix.applicability is not Applicability.SAFE:
        assert "calls self.val_acc, which nothing sets" in first.reason
    return first.fix.applicability


def test_a_field_that_nothing_sets() -> None:
    assert level("self.val_acc(loss, batch)", "self.train_acc = 1") is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("called", "sets"),
    [
        ("self.val_acc(loss, batch)", "self.val_acc = build()"),
        ("self.val_acc(loss, batch)", "setattr(self, 'val_acc', build())"),
        ("self.val_acc(loss, batch)", "self.train_acc, self.val_acc = build()"),
        ("self.val_acc(loss, batch)", "self.add_module('val_acc', build())"),
        ("pass", "self.train_acc = 1"),  # a property of a class that is not seen may give it
        ("if batch_idx > 9: self.val_acc(loss, batch)", "self.train_acc = 1"),
    ],
)
def test_a_field_that_something_sets_or_that_is_not_surely_called(called: str, sets: str) -> None:
    assert level(called, sets) is Applicability.SAFE
