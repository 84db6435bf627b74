"""DDP420: loaders whose DistributedSampler was made over another data set."""

from __future__ import annotations

import pytest

from codemods.data_loading.sampler_of_other_data import SamplerOfOtherData
from ddpfix.testing import check_nothing, check_told, check_transformed

RULE = SamplerOfOtherData
HEAD = """import torch
from torch.utils.data import DataLoader, DistributedSampler, random_split
from torchvision.datasets import MNIST


"""
OWN = """def main(args):
    train_data = MNIST("data", train=True)
    test_data = MNIST("data", train=False)
    if args.distributed:
        train_sampler = DistributedSampler(train_data)
        test_sampler = DistributedSampler(train_data, shuffle=False)
    else:
        train_sampler = test_sampler = None
    train_loader = DataLoader(train_data, batch_size=8, sampler=train_sampler)
    test_loader = DataLoader(test_data, batch_size=8, sampler=test_sampler)
    return train_loader, test_loader


main(None)
"""
SHARED = """def main(args):
    train_set, val_set = MNIST("data", train=True), MNIST("data", train=False)
    sampler = DistributedSampler(train_set) if args.ddp else None
    train_loader = DataLoader(train_set, batch_size=8, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=8, sampler=sampler)
    return train_loader, val_loader


main(None)
"""
FIXED = ("(train_data, shuffle", "(test_data, shuffle")


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)
    check_nothing(RULE, after)


def test_a_sampler_of_its_own() -> None:
    check_transformed(RULE, HEAD + OWN, HEAD + OWN.replace(*FIXED))


def test_a_sampler_among_the_options() -> None:
    source = OWN.replace("batch_size=8, sampler=test_sampler", "**options").replace(
        "    test_loader", '    options = {"batch_size": 8, "sampler": test_sampler}\n    test_loader'
    )
    check_transformed(RULE, HEAD + source, HEAD + source.replace(*FIXED))


@pytest.mark.parametrize(
    "made",
    ['MNIST("data", train=True), MNIST("data", train=False)', "random_split(args.data, [8, 2])", "args.train, args.held_out",
     "load(args)"],
)  # fmt: skip
def test_the_sampler_of_the_training(made: str) -> None:
    source = SHARED.replace('MNIST("data", train=True), MNIST("data", train=False)', made)
    found = check_told(RULE, HEAD + source, reason="of its own, over `val_set`")
    assert "deals out the indices of `train_set`, and the loader reads `val_set`" in found.message


def test_fields_of_a_trainer() -> None:
    source = (
        f"{HEAD}class Trainer:\n    def __init__(self, train, held_out):\n"
        "        self.train_set, self.val_set = train, held_out\n"
        "        self.sampler = DistributedSampler(self.train_set)\n\n"
        "    def val_loader(self):\n        return DataLoader(self.val_set, sampler=self.sampler)\n\n\n"
        "Trainer(MNIST(1), MNIST(2))\n"
    )
    check_told(RULE, source, reason="of its own, over `self.val_set`")


def test_a_sampler_whose_name_does_not_say_whose_it_is() -> None:
    source = OWN.replace("test_sampler", "second_sampler")
    check_told(RULE, HEAD + source, reason="make the sampler over `test_data`")


def test_data_that_are_made_below_the_sampler() -> None:
    line = '    test_data = MNIST("data", train=False)\n'
    source = OWN.replace(line, "").replace("    train_loader", f"{line}    train_loader", 1)
    check_told(RULE, HEAD + source, reason="make the sampler over `test_data`")


@pytest.mark.parametrize(
    "source",
    [OWN.replace(*FIXED), SHARED.replace("val_loader = DataLoader(val_set", "val_loader = DataLoader(train_set"),
     # one data set under two names, or the same rows
     SHARED.replace('train=True), MNIST("data", train=False)', 'transform=args.a), MNIST("data", transform=args.b)'),
     SHARED.replace("    sampler", "    val_set = copy.copy(train_set)\n    sampler"),
     SHARED.replace("    sampler", "    val_set = train_set\n    sampler"),
     # names that speak of no part, or of two
     SHARED.replace("val_set", "other"), SHARED.replace("val_set", "train_val_set"), SHARED.replace("train_set", "images"),
     # who gives the sampler is not seen, or it may be one of the loader's own data
     SHARED.replace("DistributedSampler(train_set)", "args.sampler(train_set)"),
     SHARED.replace("DistributedSampler(train_set) if args.ddp else None", "DistributedSampler(val_set if args else train_set)"),
     SHARED.replace("sampler=sampler)\n    return", "sampler=args.sampler)\n    return"),
     SHARED.replace("sampler=sampler)\n    return", "sampler=sampler if not args.ddp else None)\n    return"),
     SHARED.replace("    val_loader", "    sampler = DistributedSampler(val_set)\n    val_loader"),
     SHARED.replace("    val_loader", "    if args.ddp:\n        sampler = DistributedSampler(val_set)\n    val_loader"),
     SHARED.replace("    val_loader", "    if args.ddp:\n        return train_loader\n    val_loader"),
     SHARED.replace("torch.utils", "own").replace("DataLoader(val_set", "own.DataLoader(val_set")],
)  # fmt: skip
def test_loaders_of_their_own_samplers(source: str) -> None:
    check_nothing(RULE, HEAD + source)


def test_a_helper_that_is_called_for_each_part() -> None:
    source = (
        f"{HEAD}def make(data, sampler):\n    return DataLoader(data, sampler=sampler)\n\n\n"
        "def main(train_set, val_set):\n    return make(train_set, DistributedSampler(train_set)), "
        "make(val_set, DistributedSampler(val_set))\n\n\nmain([], [])\n"
    )
    check_nothing(RULE, source)
