"""DDP108: a reduced value that not every rank logs, or logs under the same key."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.metrics.divergent_log_keys import DivergentLogKeys
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = DivergentLogKeys


def step(body: str, *, name: str = "validation_step") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        "import torch\nimport lightning.pytorch as pl\nfrom torchmetrics import Accuracy\n\n\nclass M(pl.LightningModule):\n"
        "    def __init__(self):\n        super().__init__()\n        self.acc = Accuracy('binary')\n        self.flag = True\n\n"
        f"    def {name}(self, batch, batch_idx):\n        x, labels = batch\n        loss = self(x, labels)\n{lines}"
    )


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason="update a metric")
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if loss > 3:\n    self.log('high', loss, sync_dist=True)", "only ranks whose batch passes `loss > 3`"),
        ("positive = labels > 0\nif positive.any():\n    self.log('p', loss, sync_dist=True)", "positive.any()"),
        ("if len(x[labels == 1]):\n    self.log('p', self.acc)", "a metric is reduced"),
        ("for c in labels.unique():\n    self.log(f'c/{c}', loss, sync_dist=True)", "once for each of `labels.unique()`"),
        ("name = batch['name'][0]\nself.log(f'val/{name}', loss, sync_dist=True)", "under the key f'val/{name}'"),
        ("rare = labels.sum() == 0\nif rare:\n    self.log('r', loss, sync_dist=True)", "passes `rare`"),
        ("some = self.flag and (labels > 0).any()\nif some:\n    self.log('r', loss, sync_dist=True)", "passes `some`"),
        ("if labels[0] == 1:\n    self.log_dict({'a': loss}, sync_dist=True)", "labels[0] == 1"),
    ],
)  # fmt: skip
def test_told(body: str, message: str) -> None:
    found = check_told(RULE, step(body), reason="fixed key")
    assert message in found.message
    assert found.applicability is Applicability.DISPLAY


@pytest.mark.parametrize(
    "body",
    ["self.log('a', loss, sync_dist=True)",
     "if loss > 3:\n    self.log('a', loss)",
     "if loss > 3:\n    self.log('a', loss, sync_dist=False)",
     "if batch_idx % 10 == 0:\n    self.log('a', loss, sync_dist=True)",
     "if self.flag:\n    self.log('a', loss, sync_dist=True)",
     "if labels is not None:\n    self.log('a', loss, sync_dist=True)",
     "due = labels is not None and self.global_step % 5 == 0\nif due:\n    self.log('a', loss, sync_dist=True)",
     "given = 'y' in batch\nif given:\n    self.log('a', loss, sync_dist=True)",
     "alone = not len(labels)\nif alone:\n    self.log('a', loss, sync_dist=True)",
     "if 'y' in batch:\n    self.log('a', loss, sync_dist=True)",
     "if labels.shape[0] > 1 and x.ndim == 4:\n    self.log('a', loss, sync_dist=True)",
     "for k, v in loss.items():\n    self.log(k, v, sync_dist=True)",
     "for name in ('a', 'b'):\n    self.log(f'{name}/x', loss, sync_dist=True)",
     "if self.trainer.is_global_zero and loss > 3:\n    self.log('a', loss, sync_dist=True)"],
)  # fmt: skip
def test_nothing_to_say(body: str) -> None:
    check_nothing(RULE, step(body))


def test_a_class_that_is_no_lightning_module() -> None:
    check_nothing(RULE, step("if loss > 3:\n    self.log('a', loss, sync_dist=True)").replace("pl.LightningModule", "Engine"))


def test_the_tests_of_a_repository_are_left_alone() -> None:
    source = step("if loss > 3:\n    self.log('a', loss, sync_dist=True)")
    assert findings_of(RULE, source)
    check_nothing(RULE, source, path="tests/test_model.py")


def test_a_key_of_what_the_entries_are_called() -> None:
    check_nothing(RULE, step("name = '_'.join(x.keys())\nself.log(f'{name}_loss', loss, sync_dist=True)"))
    told = step("name = '_'.join(x[k] for k in x.keys())\nself.log(f'{name}_loss', loss, sync_dist=True)")
    check_told(RULE, told, reason="under a fixed key")
