from __future__ import annotations

import pytest

from codemods.data_loading.iterator_given_to_prepare import IteratorGivenToPrepare
from ddpfix.testing import check_nothing, check_told, check_transformed

TRAIN = """
from accelerate import Accelerator
from torch.utils.data import DataLoader
import itertools


def endless(loader):
    while True:
        for batch in loader:
            yield batch


def train(model, optimizer, data, steps, accelerator_made_late=False):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=8, shuffle=True)
    batches = endless(loader)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    for _ in range(steps):
        loss = model(next(batches)).mean()
        accelerator.backward(loss)
        optimizer.step()
"""
FIXED = TRAIN.replace("endless(loader)\n    model", "endless(accelerator.prepare(loader))\n    model")


def test_example_of_the_page() -> None:
    sections = IteratorGivenToPrepare.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(IteratorGivenToPrepare, before, after, unsafe=True)


@pytest.mark.parametrize("makes", ["endless", "iter", "itertools.cycle"])
def test_what_makes_an_iterator(makes: str) -> None:
    before, after = (s.replace("= endless(", f"= {makes}(") for s in (TRAIN, FIXED))
    check_transformed(IteratorGivenToPrepare, before, after, unsafe=True)


def test_an_iterator_in_the_call() -> None:
    before = TRAIN.replace("    batches = endless(loader)\n", "").replace("optimizer, batches)", "optimizer, endless(loader))")
    after = before.replace("endless(loader))", "endless(accelerator.prepare(loader)))")
    check_transformed(IteratorGivenToPrepare, before, after, unsafe=True)


def test_attributes_of_a_trainer() -> None:
    source = """
from accelerate import Accelerator
from torch.utils.data import DataLoader


def endless(loader):
    while True:
        yield from loader


class Trainer:
    def __init__(self, model, data):
        self.accelerator = Accelerator()
        self.loader = DataLoader(data, batch_size=4)
        self.batches = endless(self.loader)
        self.model, self.batches = self.accelerator.prepare(model, self.batches)

    def step(self):
        loss = self.model(next(self.batches)).mean()
        self.accelerator.backward(loss)
"""
    after = source.replace("endless(self.loader)", "endless(self.accelerator.prepare(self.loader))")
    check_transformed(IteratorGivenToPrepare, source, after, unsafe=True)
    late = source.replace("        self.accelerator = Accelerator()\n", "").replace(
        "        self.model, self", "        self.accelerator = Accelerator()\n        self.model, self"
    )
    check_told(IteratorGivenToPrepare, late, reason="prepare the loader, not the iterator")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= endless(loader)", "= loader"),
        ("= endless(loader)", "= wrap_in_something(loader)"),
        ("= endless(loader)", "= endless(accelerator.prepare(loader))"),
        ("    batches = endless(loader)", "    loader = accelerator.prepare(loader)\n    batches = endless(loader)"),
        ("shuffle=True", "sampler=DistributedSampler(data)"),
        ("shuffle=True", "batch_sampler=grouped"),
        ("shuffle=True", "**options"),
        ("DataLoader(data,", "DataLoader(shard_of(data, accelerator.process_index),"),
        ("loader = DataLoader(data, batch_size=8, shuffle=True)", "loader = somewhere.make()"),
        ("from accelerate import Accelerator", "from elsewhere import Accelerator"),
        ("accelerator.backward(loss)", "loss.item()"),
        ("yield batch", "return batch"),
    ],
)
def test_what_is_fine_or_not_seen(old: str, new: str) -> None:
    assert old in TRAIN
    check_nothing(IteratorGivenToPrepare, TRAIN.replace(old, new))


def test_batches_that_rank_zero_takes() -> None:
    alone = TRAIN + "    if accelerator.is_main_process:\n        print(model(next(batches)))\n"
    check_nothing(IteratorGivenToPrepare, alone)


def test_not_in_tests() -> None:
    check_nothing(IteratorGivenToPrepare, TRAIN, path="tests/test_train.py")
