"""DDP116: a curve over the rows that one rank has ranked by their scores, averaged over the ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.averaged_metric import AveragedMetric
from ddpfix.testing import check_nothing, check_told

WHY = "gather predictions"
CURVES = """\
import numpy as np


def area(scores, labels):
    scores = np.concatenate(scores)
    order = np.argsort(-scores)
    hits = np.cumsum(np.concatenate(labels)[order])
    return (hits / np.arange(1, len(hits) + 1)).mean(), len(hits)


def area_by_class(rows, classes):
    found = {}
    for name in classes:
        kept, right = [], []
        for row in rows:
            kept += [g.score for g in row[name]]
            right += [g.right for g in row[name]]
        order = np.argsort(kept)
        found[name] = np.asarray(right)[order].cumsum(axis=0).mean()
    return found


def area_by_query(rows):
    found = []
    for row in rows:
        order = np.argsort(row.scores)
        found.append(np.cumsum(row.labels[order]).mean())
    return np.mean(found)


def area_of_one(row):
    return np.cumsum(row.labels[np.argsort(row.scores)]).mean()


def area_through_calls(rows):
    return sum(area_of_one(row) for row in rows) / len(rows)


def area_along(scores, labels):
    order = np.argsort(-np.stack(scores), axis=1)
    return np.cumsum(np.take_along_axis(np.stack(labels), order, 1), axis=1).mean()


def mean_of(scores, labels):
    return (np.concatenate(scores) == np.concatenate(labels)).mean()


class Judge:
    def __init__(self, classes):
        self.classes = classes

    def judge(self, rows):
        return {"ap": area_by_class(rows, self.classes)["cat"], "rows": len(rows)}
"""
MODULE = """\
import lightning.pytorch as pl
from curves import Judge, area, area_along, area_by_class, area_by_query, area_through_calls, mean_of


class Base(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.scores, self.labels, self.rows = [], [], []
        self.classes = ["cat", "dog"]

    def on_validation_epoch_end(self):
        {lines}


class Model(Base):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.scores.append(self(x).cpu().numpy())
        self.labels.append(y.cpu().numpy())
        {put}


def main(data):
    pl.Trainer(devices=4).fit(Model(), data)
"""
PUT = "self.rows.append(batch)"


def program(*lines: str, put: str = PUT) -> str:
    source = MODULE.format(lines="\n        ".join(lines), put=put)
    return source.replace("self.scores, self.labels, self.rows = [], [], []", "self.scores = []\n        self.labels = []\n"
                          "        self.rows = []")  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("found, n = area(self.scores, self.labels)", 'self.log("val/AUC", found, sync_dist=True)'), "area"),
        (('self.log("val/ap", area_by_class(self.rows, self.classes)["cat"], sync_dist=True)',), "area_by_class"),
        (("kept = []", "for row in self.rows:", "    kept.append(row)", "judge = Judge(self.classes)",
          'self.log("val/AP 50", judge.judge(kept)["ap"], sync_dist=True)'), "judge"),
    ],
)  # fmt: skip
def test_all_rows_of_a_rank_in_one_order(lines: tuple[str, ...], words: str) -> None:
    found = check_told(AveragedMetric, program(*lines), reason=WHY, files={"curves.py": CURVES})
    assert f"`{words}` of each rank's own share" in found.message


@pytest.mark.parametrize(
    "source",
    [
        program('self.log("val/ap", area_by_query(self.rows), sync_dist=True)'),
        program('self.log("val/ap", area_through_calls(self.rows), sync_dist=True)'),
        program('self.log("val/ap", area_along(self.scores, self.labels), sync_dist=True)'),
        program('self.log("val/ap", mean_of(self.scores, self.labels), sync_dist=True)'),
        program('self.log("val/rows", area(self.scores, self.labels)[0], sync_dist=True)'),
        program('self.log("val/ap", area(self.scores, self.labels)[0])'),
        program('self.log("val/ap", area(self.all_gather(self.scores), self.labels)[0], sync_dist=True)'),
        program('self.log("val/ap", area([1.0], [1.0])[0], sync_dist=True)'),
        program('self.log("val/ap", area_by_class(self.rows, self.classes)["cat"], sync_dist=True)',
                put="self.rows.append(self.all_gather(batch))"),
        program("for row in self.rows:", '    self.log("val/ap", area(row, self.labels)[0], sync_dist=True)'),
    ],
)  # fmt: skip
def test_rows_in_an_order_of_their_own_and_rows_of_all(source: str) -> None:
    check_nothing(AveragedMetric, source, files={"curves.py": CURVES})
