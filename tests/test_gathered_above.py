"""DDP101: what a metric's own `compute` gave at the end of an epoch is that of all ranks."""

from __future__ import annotations

import pytest

from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import findings_of

SCORES = """\
import torch
from torchmetrics import Metric


class Scores(Metric):
    def update(self, rows):
        self.rows.extend(rows)

    def compute(self, epoch):
        return score_of(self.rows, epoch)
"""
PLAIN = SCORES.replace("(Metric)", "")
NET = """\
import lightning.pytorch as pl
from scores import Scores


class Net(pl.LightningModule):
    def __init__(self, kinds):
        super().__init__()
        self.names = []
        for kind in kinds:
            self.names.append(f"val_{{kind}}")
            setattr(self, self.names[-1], Scores(kind))
        self.whole = Scores("all")

    def validation_step(self, batch, n):
        for name in self.names:
            getattr(self, name).update(self(batch))
        self.whole.update(self(batch))

    def on_validation_epoch_end(self):
        found = {{}}
{lines}
        self.log_dict({{f"{{k}}": v for k, v in found.items()}}, on_step=False, on_epoch=True)
"""
BY_NAME = """\
        for name in self.names:
            output = getattr(self, name).compute(self.current_epoch)
            for key, value in output.items():
                found.update({f"{name}_{key}": value})
"""
BY_FIELD = """\
        output = self.whole.compute(self.current_epoch)
        for key, value in output.items():
            found.update({f"all_{key}": value})
"""
OF_OTHERS = BY_FIELD.replace("self.whole", "Evaluator(self.rows)")


@pytest.mark.parametrize(
    ("lines", "scores", "told"),
    [
        (BY_NAME, SCORES, False),
        (BY_FIELD, SCORES, False),
        (BY_NAME, PLAIN, True),
        (BY_FIELD, PLAIN, True),
        (OF_OTHERS, SCORES, True),
    ],
)
def test_scores_of_metrics_that_are_put_into_a_dict(lines: str, scores: str, told: bool) -> None:
    source = NET.format(lines=lines.rstrip("\n"))
    assert bool(findings_of(UnsyncedMetric, source, {"scores.py": scores})) is told
