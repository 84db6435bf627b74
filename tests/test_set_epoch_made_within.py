"""DDP402: loaders that DeepSpeed makes, and those that a generator without end makes itself."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_transformed

RULE = MissingSetEpoch
ENGINE = """import deepspeed


def main(model, data):
    engine, _, loader, _ = deepspeed.initialize(model=model, training_data=data)
    for epoch in range(10):
        total = 0
        for x, y in loader:
            loss = (engine(x) - y).square().mean()
            engine.backward(loss)
            engine.step()


main(None, [])
"""
ENDLESS = """import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Quick(DataLoader):
    pass


def batches(data):
    sampler = DistributedSampler(data) if torch.distributed.is_initialized() else None
    loader = Quick(data, batch_size=8, sampler=sampler)
    while True:
        yield from loader


def main(model, data):
    rows = batches(data)
    for step in range(100):
        x = next(rows)
        model(x).mean().backward()


main(None, [])
"""


def test_a_loader_of_deepspeed() -> None:
    told = "        loader.data_sampler.set_epoch(epoch)\n        total = 0\n"
    check_transformed(RULE, ENGINE, ENGINE.replace("        total = 0\n", told), unsafe=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("training_data=data", "training_data=None"), (", training_data=data", ""),
     ("        total = 0", "        data.set_epoch(epoch)"), ("for epoch in range(10):", "for part in data.parts:"),
     ("            engine.backward(loss)\n", ""),
     ("            engine.step()\n", "            engine.step()\n        break\n"), ("deepspeed.initialize", "own.initialize"),
     ("    for epoch", "    loader = own(loader)\n    for epoch"), ("        total = 0", "        loader.data_sampler.turn()")],
)  # fmt: skip
def test_loaders_of_deepspeed_that_need_nothing(old: str, new: str) -> None:
    check_nothing(RULE, ENGINE.replace(old, new))


def test_a_loader_that_the_generator_makes() -> None:
    told = (
        "    epoch = 0\n    while True:\n        if hasattr(loader.sampler, \"set_epoch\"):\n            "
        "loader.sampler.set_epoch(epoch)\n        yield from loader\n        epoch += 1\n"
    )
    check_transformed(RULE, ENDLESS, ENDLESS.replace("    while True:\n        yield from loader\n", told))


@pytest.mark.parametrize(
    ("old", "new"),
    [("        yield from loader", "        sampler.set_epoch(0)\n        yield from loader"),
     ("DistributedSampler(data) if", "DistributedSampler(data, shuffle=False) if"), ("backward()", "item()"),
     ("else None", "else data.sampler"), ("    while True:", "    loader = data.wrap(loader)\n    while True:"),
     ("    pass", "    def __init__(self, *rows, **options):\n        super().__init__(*rows)")],
)  # fmt: skip
def test_generators_that_need_nothing(old: str, new: str) -> None:
    check_nothing(RULE, ENDLESS.replace(old, new))
