from __future__ import annotations

import pytest

from codemods.metrics.synced_metric_object import SyncedMetricObject
from ddpfix.testing import check_nothing, check_transformed

SOURCE = """\
import lightning as L
import torch
import torchmetrics as tm
from torchmetrics.classification import MulticlassAccuracy


class Model(L.LightningModule):
    def __init__(self, given):
        super().__init__()
        self.acc = MulticlassAccuracy(num_classes=3)
        shared = tm.MetricCollection([tm.MeanSquaredError()])
        self.all = shared.clone(prefix="val/")
        self.twice = self.acc.clone()
        self.by_name = torch.nn.ModuleDict({name: tm.MeanMetric() for name in ("a", "b")})
        self.mixed = torch.nn.ModuleList([tm.MeanMetric(), torch.nn.Linear(1, 1)])
        self.later = None
        self.given = given

    def setup(self, stage):
        self.later = tm.MeanMetric()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        CALL
"""


def source(call: str) -> str:
    return SOURCE.replace("CALL", call)


def test_example_of_the_page() -> None:
    sections = SyncedMetricObject.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(SyncedMetricObject, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('self.log("a", self.acc, sync_dist=True)', 'self.log("a", self.acc)'),
        ('self.log("a", self.acc, sync_dist=True, prog_bar=True)', 'self.log("a", self.acc, prog_bar=True)'),
        ('self.log(name="a", sync_dist=True, value=self.acc)', 'self.log(name="a", value=self.acc)'),
        ("self.log_dict(self.all, sync_dist=True)", "self.log_dict(self.all)"),
        ('self.log("a", self.twice, sync_dist=True)', 'self.log("a", self.twice)'),
        ('self.log("a", self.by_name["a"], sync_dist=True)', 'self.log("a", self.by_name["a"])'),
        ('self.log("a", self.later, sync_dist=True)', 'self.log("a", self.later)'),
        ('self.log_dict({"a": self.acc, "b": self.later}, sync_dist=True)', 'self.log_dict({"a": self.acc, "b": self.later})'),
    ],
)
def test_every_spelling(before: str, after: str) -> None:
    check_transformed(SyncedMetricObject, source(before), source(after))


@pytest.mark.parametrize(
    "call",
    [
        'self.log("a", self.acc)',
        'self.log("a", self.acc, sync_dist=False)',
        'self.log("a", self.acc, sync_dist=self.several)',
        'self.log("a", self.acc(x, y), sync_dist=True)',
        'self.log("a", self.acc.compute(), sync_dist=True)',
        'self.log("a", self.acc.threshold, sync_dist=True)',
        'self.log("a", self.mixed[0], sync_dist=True)',
        'self.log("a", self.given, sync_dist=True)',
        'self.log("a", self.unseen, sync_dist=True)',
        'self.log("a", x.mean(), sync_dist=True)',
        'self.log_dict({"a": self.acc, "b": x.mean()}, sync_dist=True)',
        "self.log_dict({}, sync_dist=True)",
        'self.log(*y, "a", self.acc, sync_dist=True)',
    ],
)
def test_other_values_and_decisions(call: str) -> None:
    check_nothing(SyncedMetricObject, source(call))


def test_the_same_key_logged_with_it_elsewhere() -> None:
    both = 'self.log("a", self.acc, sync_dist=True)\n        self.log("a", self.acc, sync_dist=self.several)'
    check_nothing(SyncedMetricObject, source(both))
    twice = 'self.log("a", self.acc, sync_dist=True)\n        if y.any():\n            self.log("a", self.acc, sync_dist=True)'
    check_transformed(SyncedMetricObject, source(twice), source(twice.replace(", sync_dist=True", "")))


def test_an_own_log_of_the_class() -> None:
    own = source('self.log("a", self.acc, sync_dist=True)') + "\n    def log(self, name, value, sync_dist):\n        pass\n"
    check_nothing(SyncedMetricObject, own)


def test_a_metric_that_does_not_reduce_itself() -> None:
    local = source('self.log("a", self.acc, sync_dist=True)').replace("num_classes=3", "num_classes=3, sync_on_compute=False")
    check_nothing(SyncedMetricObject, local)


def test_a_class_that_is_no_lightning_module() -> None:
    check_nothing(SyncedMetricObject, source('self.log("a", self.acc, sync_dist=True)').replace("L.LightningModule", "L.Fabric"))


def test_a_metric_of_a_base_in_another_file_and_an_own_metric_class() -> None:
    files = {
        "base.py": """\
            import pytorch_lightning as ptl
            from parts import Share


            class Base(ptl.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.share = Share()
            """,
        "parts/__init__.py": "from .share import Share\n",
        "parts/share.py": "import torchmetrics\n\n\nclass Share(torchmetrics.Metric):\n    pass\n",
    }
    before = """\
        from base import Base


        class Model(Base):
            def validation_step(self, batch, batch_idx):
                self.log(
                    "share",
                    self.share,
                    on_epoch=True,
                    sync_dist=True,  # on every rank
                )
        """
    after = """\
        from base import Base


        class Model(Base):
            def validation_step(self, batch, batch_idx):
                self.log(
                    "share",
                    self.share,
                    on_epoch=True,
                )
        """
    check_transformed(SyncedMetricObject, before, after, files=files)


def test_two_spaces_and_tabs() -> None:
    for indent in ("  ", "\t"):
        before = source('self.log("a", self.acc, sync_dist=True)').replace("    ", indent)
        check_transformed(SyncedMetricObject, before, before.replace(", sync_dist=True", ""))
