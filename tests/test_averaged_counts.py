"""DDP116: scores of counts that each rank has added up of its own share, which Lightning averages over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told

WHY = "reduce the counts over the ranks"
COUNTS = """\
from collections import defaultdict


class Counts:
    def __init__(self):
        self.hits = self.wrong = self.missed = self.rows = 0
        self.of_class = defaultdict(float)

    def add(self, guesses, labels):
        self.hits += int((guesses & labels).sum())
        self.wrong += int((guesses & ~labels).sum())
        self.missed += int((~guesses & labels).sum())
        self.rows += len(labels)
        self.of_class["seen"] += len(labels)

    def scores(self):
        found = self.hits + self.missed
        recall = self.hits / found if found else 0.0
        return {"recall": recall, "iou": self.hits / (self.hits + self.wrong + self.missed + 1e-6), "rows": self.rows}

    def f_score(self):
        return 2 * self.hits / (2 * self.hits + self.wrong + self.missed)

    def share(self):
        return {"iou": self.hits / self.rows, "recall": self.hits / (self.rows + 1)}
"""
MODULE = """\
import lightning.pytorch as pl
from counting import Counts


class Model(pl.LightningModule):
    def __init__(self, stages):
        super().__init__()
        self.many = {many}
        self.counts = Counts()
        self.by_stage = {{}}
        for stage in stages:
            self.by_stage[stage] = {{}}
            self.by_stage[stage]["all"] = Counts()
        self.parts = [Counts() for stage in stages]
        self.mixed = {{"a": Counts(), "b": Model}}

    def {step}_step(self, batch, batch_idx):
        x, y = batch
        self.counts.add(self(x) > 0, y)

    def on_{step}_epoch_end(self):
        {lines}

    def shown(self, kept, name):
        scores = {{}}
        scores[name], other = kept.f_score(), name
        self.log("all", scores[name], sync_dist=True)


def main(data):
    pl.Trainer(devices={devices}).fit(Model(["a"]), data)
"""


def program(*lines: str, many: str = "True", devices: str = "4", step: str = "validation") -> str:
    return MODULE.format(lines="\n        ".join(lines), many=many, devices=devices, step=step)


LOG = 'self.log("val/iou", self.counts.scores()["iou"], sync_dist=True)'


@pytest.mark.parametrize(
    "lines",
    [
        (LOG,),
        (LOG.replace("sync_dist=True", "sync_dist=self.many"),),
        ('found = self.counts.scores()', 'self.log("val/recall", 100 * found["recall"], sync_dist=True)'),
        ('self.log("val/f", self.counts.f_score(), sync_dist=True)',),
        ('kept = self.by_stage["a"]["all"]', 'self.log("val", kept.scores()["iou"], sync_dist=True)'),
        ("for kept in self.parts:", '    self.log("val", kept.f_score(), sync_dist=True)'),
        ("for name, kept in self.by_stage.items():", '    self.log(name, kept["all"].scores()["iou"], sync_dist=True)'),
        ('self.shown(self.by_stage["a"]["all"], "iou")',),
    ],
)
def test_scores_of_the_counts_of_each_rank(lines: tuple[str, ...]) -> None:
    found = check_told(AveragedMetric, program(*lines), reason=WHY, files={"counting.py": COUNTS})
    assert "of `Counts`" in found.message


@pytest.mark.parametrize(
    "source",
    [
        program(LOG, devices="1"),
        program(LOG, step="train"),
        program(LOG.replace(", sync_dist=True", "")),
        program(LOG.replace("sync_dist=True", "sync_dist=self.many"), many="False"),
        program(LOG.replace("sync_dist=True", "sync_dist=self.many"), many="stages"),
        program(LOG.replace('["iou"]', '["rows"]')),
        program(LOG.replace("scores()", "share()")),
        program(LOG.replace("scores()", "share()").replace("iou", "recall")),
        program(LOG.replace("self.counts", "self.mixed['a']")),
        program("self.all_gather(self.counts.hits)", LOG),
    ],
)
def test_counts_of_one_device_means_and_what_is_not_averaged(source: str) -> None:
    check_nothing(AveragedMetric, source, files={"counting.py": COUNTS})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        found = self", "        dist.all_reduce(self.hits)\n        found = self"),
        ("class Counts:", "import torchmetrics\n\n\nclass Counts(torchmetrics.Metric):"),
        ("self.hits += int", "self.hits = int"),
    ],
)
def test_counts_that_are_those_of_all_or_are_not_added_up(old: str, new: str) -> None:
    assert old in COUNTS
    check_nothing(AveragedMetric, program(LOG), files={"counting.py": COUNTS.replace(old, new)})
