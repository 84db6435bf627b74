"""DDP402 where `set_epoch` is called with a number that is the same in each epoch."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "from argparse import ArgumentParser\n\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n\n"

OF_OBJECT = """class Base:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.first = 0

    def resume(self, saved):
        self.first = saved["epoch"] + 1


class Fitter(Base):
    def fit(self, saved, epochs):
        if saved:
            self.resume(saved)
        for n in range(self.first, epochs):  # epochs
            self.round(n)

    def round(self, n):
        self.model.fit()
        self.loader.sampler.set_epoch({})
        for x in self.loader:
            self.model(x).mean().backward()
"""
OF_FUNCTION = """def fit(model, data, {parameters}):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range({first}, 10):
        sampler.set_epoch({number})
        for x in loader:
            model(x).mean().backward()
"""


def of_function(number: str, parameters: str = "first", first: str = "first") -> str:
    return HEAD + OF_FUNCTION.format(number=number, parameters=parameters, first=first)


def test_an_attribute_that_only_a_resumed_run_changes() -> None:
    before, after = (HEAD + OF_OBJECT.format(number) for number in ("self.first", "n"))
    (found,) = check_transformed(MissingSetEpoch, before, after, unsafe=True)
    assert "`self.first` is the same in every epoch" in found.message


@pytest.mark.parametrize("number", ["0", "first", "first + 1"])
def test_a_number_that_the_loop_leaves_as_it_is(number: str) -> None:
    check_transformed(MissingSetEpoch, of_function(number), of_function("epoch"), unsafe=True)


def test_an_option_of_the_command_line() -> None:
    options = "OPTIONS = ArgumentParser().parse_args()\n\n\n"
    before, after = (HEAD + options + OF_FUNCTION.format(parameters="n", first="0", number=n) for n in ("OPTIONS.start", "epoch"))
    check_transformed(MissingSetEpoch, before, after, unsafe=True)


ROUND = """def train_one(model, loader, sampler, number{}):
    sampler.set_epoch(number)
    for x in loader:
        model(x).mean().backward()


def fit(model, data, first):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(10):
        train_one(model, loader, sampler{})
"""


@pytest.mark.parametrize(("default", "given"), [("", ", first"), ("=0", "")])
def test_a_number_that_the_loop_hands_over(default: str, given: str) -> None:
    check_told(MissingSetEpoch, HEAD + ROUND.format(default, given), reason="hand over the number of the epoch")


@pytest.mark.parametrize(("default", "given"), [("", ", epoch"), ("=0", ", number=epoch"), ("=0", ", *[epoch]")])
def test_the_number_of_the_round_handed_over(default: str, given: str) -> None:
    check_nothing(MissingSetEpoch, HEAD + ROUND.format(default, given))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            self.round(n)\n", "            self.round(n)\n            self.first += 1\n"),
        ("        self.model.fit()\n", "        self.resume({'epoch': n})\n"),
        ("class Base:", "from elsewhere import Whole\n\n\nclass Base(Whole):"),
        ("        self.model.fit()\n", "        setattr(self, 'first', n)\n"),
        ("\n\nclass Fitter", "\n\ndef on_epoch(fitter, n):\n    fitter.first = n\n\n\nclass Fitter"),
        ("    def resume(", "    @property\n    def first(self):\n        return self.rounds\n\n    def resume("),
        ("        self.first = 0\n", "        self.number = 0\n"),
    ],
)
def test_an_attribute_that_a_round_may_change(old: str, new: str) -> None:
    source = (HEAD + OF_OBJECT.format("self.first")).replace(old, new)
    if "self.number" in new:
        source = source.replace('        self.first = saved["epoch"] + 1\n', "        self.saved = saved\n")
    check_nothing(MissingSetEpoch, source)


def test_an_heir_that_counts() -> None:
    heir = "\n\nclass Counting(Fitter):\n    def round(self, n):\n        self.first = n\n        super().round(n)\n"
    check_nothing(MissingSetEpoch, HEAD + OF_OBJECT.format("self.first") + heir)


@pytest.mark.parametrize(
    ("number", "more"),
    [
        ("first", "        first += 1\n"),
        ("first", "        first = epoch\n"),
        ("0", "        sampler.set_epoch(epoch)\n"),
        ("count", "        count = epoch\n"),
    ],
)
def test_a_number_that_the_loop_changes(number: str, more: str) -> None:
    source = of_function(number)
    if "sampler.set_epoch" in more:
        source = source.replace("        for x in", f"{more}        for x in")
    else:
        source += more
    check_nothing(MissingSetEpoch, source)


def test_what_is_no_loop_over_epochs() -> None:
    check_nothing(MissingSetEpoch, of_function("first").replace("epoch in range", "part in range"))


def test_one_order_for_what_is_evaluated() -> None:
    check_nothing(MissingSetEpoch, of_function("epoch") + "        val_sampler.set_epoch(0)\n")


def test_a_sampler_told_once_in_front_of_the_loop() -> None:
    source = of_function("epoch").replace("    for epoch", "    sampler.set_epoch(first)\n    for epoch")
    check_nothing(MissingSetEpoch, source)


IN_A_HELPER = """def run(model, train_loader, other_loader):
    for epoch in range(10):
        for x in train_loader:
            model(x).mean().backward()
        {name}(model, other_loader)


def {name}(model, loader):
    loader.sampler.set_epoch(1)
    return sum(model(x).mean().item() for x in loader)
"""


def test_one_order_is_wanted_where_a_function_evaluates() -> None:
    check_nothing(MissingSetEpoch, HEAD + IN_A_HELPER.format(name="validate"))
    check_nothing(MissingSetEpoch, HEAD + IN_A_HELPER.format(name="eval_epoch"))


def test_a_helper_of_another_name_may_train() -> None:
    check_told(MissingSetEpoch, HEAD + IN_A_HELPER.format(name="pass_over"), reason="the same in every epoch")
