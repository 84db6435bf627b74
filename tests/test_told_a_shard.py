"""DDP402: an own batch sampler that is told the epoch through the loader which Accelerate prepared."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_told

OWN = """\
import torch
from torch.utils.data import Sampler


class Buckets(Sampler):
    def __init__(self, data):
        self.data, self.{field} = data, 0

    def set_epoch(self, epoch):
        self.{field} = epoch

    def __iter__(self):
        order = torch.Generator()
        order.manual_seed(self.epoch)
        return iter(torch.randperm(len(self.data), generator=order).split(8))
"""
TRAIN = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader
from buckets import Buckets


def train(model, data, optimizer, by_size):
    accelerator = Accelerator()
    if by_size:
        loader = DataLoader(data, batch_sampler={batches})
    else:
        loader = DataLoader(data, batch_size=8, shuffle=True)
    {prepared}
    for epoch in range(9):
        {told}
        for x in loader:
            accelerator.backward(model(x).sum())
            optimizer.step()
"""
PREPARED = "model, loader = accelerator.prepare(model, loader)"
TESTED = "if hasattr(loader.batch_sampler, 'set_epoch'):\n            loader.batch_sampler.set_epoch(epoch)"
INNER = "loader.batch_sampler.batch_sampler.set_epoch(epoch)"


def files(field: str = "epoch", **more: str) -> dict[str, str]:
    return {"buckets.py": OWN.format(field=field), **more}


def source(told: str = TESTED, prepared: str = PREPARED, batches: str = "Buckets(data)") -> str:
    return TRAIN.format(told=told, prepared=prepared, batches=batches)


@pytest.mark.parametrize(
    ("told", "ends"),
    [(TESTED, "the order of the first"), ("loader.batch_sampler.set_epoch(epoch)", "raises AttributeError")],
)
def test_the_batch_sampler_of_a_prepared_loader(told: str, ends: str) -> None:
    found = check_told(MissingSetEpoch, source(told), reason="on the own batch sampler", files=files())
    assert ends in found.message and [e.line for e in found.evidence] == [9]


def test_the_accelerator_is_a_field() -> None:
    made = source().replace("accelerator = Accelerator()", "self = Run(Accelerator())")
    fields = made.replace(" accelerator.", " self.accelerator.")
    check_told(MissingSetEpoch, fields, reason="on the own batch sampler", files=files())


@pytest.mark.parametrize("prepared", ["model = accelerator.prepare(model)", "model, loader = other.prepare(model, loader)"])
def test_a_loader_that_nobody_prepares(prepared: str) -> None:
    check_nothing(MissingSetEpoch, source(prepared=prepared), files=files())


def test_an_own_loader_is_left_behind_the_prepared_one() -> None:
    again = f"{PREPARED}\n    loader = DataLoader(data, batch_sampler=Buckets(data))"
    check_nothing(MissingSetEpoch, source(prepared=again), files=files())


@pytest.mark.parametrize(
    "told",
    [
        f"{TESTED}\n        else:\n            {INNER}",
        "try:\n            loader.batch_sampler.set_epoch(epoch)\n        except AttributeError:\n            pass",
        "if accelerator.num_processes == 1:\n            loader.batch_sampler.set_epoch(epoch)",
        "loader.set_epoch(epoch)",
    ],
)
def test_calls_that_reach_it_or_know_of_it(told: str) -> None:
    check_nothing(MissingSetEpoch, source(told), files=files())


def test_an_order_that_no_epoch_changes_and_loaders_that_are_dealt_out_elsewhere() -> None:
    check_nothing(MissingSetEpoch, source(), files=files(field="unread"))
    check_nothing(MissingSetEpoch, source(batches="other(data)"), files=files())
    dispatching = {"run.py": "from accelerate import Accelerator\nrun = Accelerator(dispatch_batches=True)\n"}
    check_nothing(MissingSetEpoch, source(), files=files(**dispatching))
