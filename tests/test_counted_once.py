"""DDP605: an object that gathers the samples of all ranks, and asks which of them it has seen."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, findings_of

SOURCE = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


class Scores:
    def __init__(self):
        self.kept = []

    def update(self, name, score):
        self.kept.append((name, score))

    def sync(self):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, self.kept)
        self.kept = [one for part in parts for one in part]

    def result(self):
        seen, hits = [], 0
        for name, score in self.kept:
            if name not in seen:
                seen.append(name)
                hits += score
        return hits


def evaluate(model, loader):
    scores = Scores()
    with torch.no_grad():
        for names, x in loader:
            for name, score in zip(names, model(x)):
                scores.update(name, score)
    scores.sync()
    return scores.result()


def main(model, data):
    dist.init_process_group("nccl")
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    print(evaluate(model, loader))
"""
ASKED = "            if name not in seen:\n                seen.append(name)\n                hits += score\n"


def test_each_sample_is_counted_once() -> None:
    check_nothing(GatheredDuplicates, SOURCE)


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace(ASKED, "            hits += score\n"),  # nobody asks
        SOURCE.replace("in self.kept:", "in self.others:"),  # of other samples
    ],
)
def test_repeated_samples_that_count(source: str) -> None:
    assert len(findings_of(GatheredDuplicates, source)) == 1
