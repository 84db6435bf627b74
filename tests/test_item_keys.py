"""Loaders that are taken out of a dictionary or a list by a key that a test decides, or that a loop goes through."""

from __future__ import annotations

import pytest

from codemods.data_loading.missing_distributed_sampler import MissingDistributedSampler
from codemods.data_loading.missing_set_epoch import MissingSetEpoch
from ddpfix.testing import check_nothing, findings_of

MADE = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader_of(rows, part, size):
    data = TensorDataset(rows[part])
    return DataLoader(data, batch_size=size)


def main(net, rows, options):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net)
"""
COMPREHENSION = '    loaders = {part: loader_of(rows, part, 8) for part in ("fit", "check")}\n'
WRITTEN_OUT = '    loaders = {"fit": loader_of(rows, "fit", 8), "check": loader_of(rows, "check", 1)}\n'
LISTED = '    loaders = [loader_of(rows, "fit", 8), loader_of(rows, "check", 1)]\n'
RUNNER = "    Runner(model, loaders, options).run()\n\n\n"
CLASS = """\
class Runner:
    def __init__(self, model, loaders, options):
        self.model, self.loaders, self.options = model, loaders, options

    def run(self):
        for epoch in range(10):
            self.once(epoch, True)
            self.once(epoch, False)

    def once(self, epoch, learn):
"""
IN_LINE = """\
        for (x,) in self.loaders["fit" if learn else "check"]:
            self.model(x).mean().backward()
"""
BY_NAME = """\
        part = "fit" if learn else "check"
        batches = self.loaders[part]
        for (x,) in batches:
            self.model(x).mean().backward()
"""
NESTED = IN_LINE.replace('else "check"', 'else ("check" if epoch else "fit")')
PHASES = """\
        for part in ["fit", "check"]:
            for (x,) in self.loaders[part]:
                self.model(x).mean().backward()
"""
NAMED_PHASES = '        parts = ("fit", "check")\n' + PHASES.replace('["fit", "check"]', "parts")
NUMBERS = IN_LINE.replace('"fit" if learn else "check"', "0 if learn else 1")


@pytest.mark.parametrize("made", [COMPREHENSION, WRITTEN_OUT])
@pytest.mark.parametrize("loop", [IN_LINE, BY_NAME, NESTED, PHASES, NAMED_PHASES])
def test_a_loader_by_one_of_several_keys(made: str, loop: str) -> None:
    found = findings_of(MissingDistributedSampler, MADE + made + RUNNER + CLASS + loop)
    assert [f.span.line for f in found] == [8]


def test_a_loader_by_one_of_several_numbers() -> None:
    assert [f.span.line for f in findings_of(MissingDistributedSampler, MADE + LISTED + RUNNER + CLASS + NUMBERS)] == [8]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"fit" if learn else "check"', '"fit" if learn else self.options.part'),  # the other may be any
        ('["fit", "check"]', '["fit", self.options.part]'),
        ('["fit", "check"]', "self.options.parts"),
        ("parts = (", "parts = self.options.parts or ("),
        ('part = "fit" if', 'part = self.options.part if epoch else "fit" if'),
        ("batch_size=size)", "batch_size=size, sampler=DistributedSampler(data))"),
    ],
)
def test_keys_that_are_not_seen(old: str, new: str) -> None:
    for loop in (IN_LINE, BY_NAME, PHASES, NAMED_PHASES):
        text = MADE + COMPREHENSION + RUNNER + CLASS + loop
        if old in text:
            check_nothing(MissingDistributedSampler, text.replace(old, new))


def test_one_of_the_loaders_has_a_sampler() -> None:
    fit = "DataLoader(rows, batch_size=8, sampler=DistributedSampler(rows))"
    made = f'    loaders = {{"fit": {fit}, "check": loader_of(rows, "check", 1)}}\n'
    for loop in (IN_LINE, BY_NAME, PHASES):
        check_nothing(MissingDistributedSampler, MADE + made + RUNNER + CLASS + loop)


SAMPLED = (
    '    fit, check = TensorDataset(rows["fit"]), TensorDataset(rows["check"])\n'
    "    loaders = {\n"
    '        "fit": DataLoader(fit, batch_size=8, sampler=DistributedSampler(fit)),\n'
    '        "check": DataLoader(check, batch_size=8, sampler=DistributedSampler(check, shuffle=False)),\n'
    "    }\n"
)


def test_a_sampler_that_nobody_tells_the_epoch() -> None:
    found = findings_of(MissingSetEpoch, MADE + SAMPLED + RUNNER + CLASS + BY_NAME)
    assert [f.span.line for f in found] == [27]


def test_a_sampler_that_is_told() -> None:
    telling = "        if learn:\n            batches.sampler.set_epoch(epoch)\n        for (x,)"
    told = BY_NAME.replace("        for (x,)", telling)
    check_nothing(MissingSetEpoch, MADE + SAMPLED + RUNNER + CLASS + told)
