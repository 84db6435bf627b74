"""DDP101 and DDP108 of log calls that stand in another object, which holds the LightningModule."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.metrics.divergent_log_keys import DivergentLogKeys
from codemods.metrics.unsynced_metric import UnsyncedMetric
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import lightning.pytorch as pl\nimport torch\nimport torch.nn.functional as F\nfrom torchmetrics import MeanMetric\n\n\n"
MODULE = """

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 2)
        self.mean = MeanMetric()
        self.task = Task(self)

    def forward(self, x):
        return self.net(x)

    def validation_step(self, batch, batch_idx):
        self.task.validate(batch)
"""


def task(*lines: str, made: str = "self.model = model", module: str = MODULE) -> str:
    """A task object that a module makes with itself; `lines` are what it does with a batch of the validation."""
    body = "".join(f"        {line}\n" for line in lines)
    given = f"    def __init__(self, model):\n        {made}\n\n" if made else ""
    return (
        f"{HEAD}class Task:\n{given}    def validate(self, batch):\n        x, y = batch\n"
        f"        loss = F.mse_loss(self.model(x), y)\n{body}{module}"
    )


def offered(source: str) -> str:
    """The reason of the one finding, which offers an unsafe sync_dist."""
    (found,) = findings_of(UnsyncedMetric, source)
    assert found.applicability is Applicability.UNSAFE, found
    return found.reason


def test_a_task_that_the_module_makes_with_itself() -> None:
    assert "right if self.model is Net" in offered(task("self.model.log('val', loss)"))


def test_a_class_that_comes_as_the_default_of_a_parameter() -> None:
    module = MODULE.replace("def __init__(self):", "def __init__(self, kind=Task):").replace("Task(self)", "kind(self)")
    assert "self.model is Net" in offered(task("self.model.log('val', loss)", module=module))


def test_the_constructor_of_a_base_class() -> None:
    source = task("self.model.log('val', loss)").replace("class Task:", "class Task(Base):")
    source = source.replace("        self.model = model\n", "")
    base = "class Base:\n    def __init__(self, model):\n        self.model = model\n\n\n"
    source = source.replace("    def __init__(self, model):\n\n", "").replace("class Task(Base)", base + "class Task(Base)")
    assert offered(source)


def test_an_attribute_that_the_module_sets() -> None:
    module = MODULE.replace("Task(self)", "Task()\n        self.task.model = self")
    source = task("self.model.log('val', loss)", made="", module=module)
    assert offered(source)


def test_a_helper_that_is_handed_the_module() -> None:
    source = (
        HEAD + "def report(model, loss):\n    model.log('val', loss)\n\n\nclass Net(pl.LightningModule):\n"
        "    def validation_step(self, batch, batch_idx):\n        report(self, F.mse_loss(self(batch[0]), batch[1]))\n"
    )
    assert offered(source)


def test_the_log_method_itself_is_handed_on() -> None:
    source = task("self.log('val', F.mse_loss(x, y))", made="self.log = model")
    source = source.replace("        loss = F.mse_loss(self.model(x), y)\n", "").replace("Task(self)", "Task(self.log)")
    assert "right if" in offered(source)


def test_a_metric_of_the_module_that_is_called_is_told() -> None:
    source = task("value = self.model.mean(loss)", "self.model.log('val', value)")
    check_told(UnsyncedMetric, source, reason="update the metric")


def test_a_test_on_the_batch_is_told() -> None:
    check_told(UnsyncedMetric, task("if y.any():", "    self.model.log('val', loss)"), reason="y.any()")


@pytest.mark.parametrize(
    "lines",
    [
        ("self.model.log('val', loss, sync_dist=True)",),
        ("self.model.log('val', loss, sync_dist=False)",),
        ("self.model.log('val', self.model.all_gather(loss).mean())",),
        ("self.model.log('val', self.model.trainer.strategy.reduce(loss))",),
        ("self.model.mean.update(loss)", "self.model.log('val', self.model.mean)"),
        ("self.model.log('epoch', self.model.current_epoch)",),
        ("self.model.log('val', loss, on_epoch=False)",),
        ("self.model.log('scale', 3.0)",),
    ],
)
def test_nothing_is_said(lines: tuple[str, ...]) -> None:
    check_nothing(UnsyncedMetric, task(*lines))


def test_nothing_of_an_object_that_no_module_makes() -> None:
    check_nothing(UnsyncedMetric, task("self.model.log('val', loss)", module=""))


def test_nothing_of_an_object_that_no_hook_uses() -> None:
    module = MODULE.replace("        self.task.validate(batch)\n", "        return batch\n")
    check_nothing(UnsyncedMetric, task("self.model.log('val', loss)", module=module))


def test_nothing_of_a_training_value_that_nobody_watches() -> None:
    check_nothing(UnsyncedMetric, task("self.model.log('loss', loss)", module=MODULE.replace("validation_step", "training_step")))


def test_nothing_of_a_log_that_is_no_modules() -> None:
    module = MODULE.replace("Task(self)", "Task(torch.nn.Linear(2, 2))")
    check_nothing(UnsyncedMetric, task("self.model.log('val', loss)", module=module))


# The keys


def test_a_helper_makes_the_keys_in_a_loop_over_the_batch() -> None:
    source = task("self.model.log_dict(self.each(loss, y), sync_dist=True)").replace(
        "    def validate", "    def each(self, loss, y):\n        out = {}\n        for c in y.unique().tolist():\n"
        "            out[f'c/{c}'] = loss\n        return out\n\n    def validate")  # fmt: skip
    found = check_told(DivergentLogKeys, source, reason="fixed key")
    assert "y.unique().tolist()" in found.message


def test_the_batch_decides_over_the_order_of_the_keys() -> None:
    body = "self.model.log_dict({k: v for k, v in sorted(zip('ab', y), key=lambda p: p[1].item())}, sync_dist=True)"
    assert "order of the keys" in check_told(DivergentLogKeys, task(body), reason="fixed key").message


@pytest.mark.parametrize(
    "line",
    [
        "self.model.log_dict({f'c/{i}': loss for i in range(3)}, sync_dist=True)",
        "self.model.log_dict({k: v for k, v in sorted(zip('ab', y), key=lambda p: p[0])}, sync_dist=True)",
        "self.model.log_dict({f'c/{c}': loss for c in y.unique().tolist()})",
        "self.model.log_dict({k: v for k, v in x.items()}, sync_dist=True)",
    ],
)
def test_nothing_of_keys_that_all_ranks_have(line: str) -> None:
    check_nothing(DivergentLogKeys, task(line))


# Training values that decide, and rank_zero_only


def watched(line: str, watcher: str = "ModelCheckpoint(monitor='loss')") -> str:
    return (
        HEAD + "from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint\n\n\nclass Net(pl.LightningModule):\n"
        f"    def training_step(self, batch, batch_idx):\n        loss = F.mse_loss(self(batch[0]), batch[1])\n        {line}\n"
        f"        return loss\n\n\ntrainer = pl.Trainer(callbacks=[{watcher}])\n"
    )


def test_a_training_value_that_a_checkpoint_watches() -> None:
    (found,) = findings_of(UnsyncedMetric, watched("self.log('loss', loss)"))
    assert found.applicability is Applicability.UNSAFE
    assert "at each training step" in found.message and "ModelCheckpoint(monitor=…)" in found.message


def test_a_watched_value_with_rank_zero_only() -> None:
    source = watched("self.log('loss', loss, rank_zero_only=True)", "EarlyStopping(monitor='loss')")
    (found,) = findings_of(UnsyncedMetric, source)
    assert found.applicability is Applicability.UNSAFE and found.fix is not None and len(found.fix.edits) == 2


def test_a_watched_value_that_only_rank_0_logs_is_told() -> None:
    line = "if self.trainer.is_global_zero:\n            self.log('loss', loss, rank_zero_only=True)"
    check_told(UnsyncedMetric, watched(line), reason="on every rank")


@pytest.mark.parametrize(
    ("line", "watcher"),
    [
        ("self.log('loss', loss)", "ModelCheckpoint(monitor='val_loss')"),
        ("self.log('loss', loss, sync_dist=True)", "ModelCheckpoint(monitor='loss')"),
        ("self.log('loss', loss, sync_dist=False)", "ModelCheckpoint(monitor='loss')"),
        ("self.log('loss', self.all_gather(loss).mean())", "ModelCheckpoint(monitor='loss')"),
        ("self.log('loss', loss, rank_zero_only=True)", "ModelCheckpoint(monitor='val_loss')"),
        ("self.log('loss', self.global_step)", "ModelCheckpoint(monitor='loss')"),
    ],
)
def test_nothing_of_what_nobody_decides_by(line: str, watcher: str) -> None:
    check_nothing(UnsyncedMetric, watched(line, watcher))


def test_nothing_where_another_models_script_watches_such_a_key() -> None:
    other = (
        "import lightning.pytorch as pl\nfrom lightning.pytorch.callbacks import ModelCheckpoint\n\n\n"
        "class Other(pl.LightningModule):\n    pass\n\n\nModelCheckpoint(monitor='loss')\npl.Trainer().fit(Other())\n"
    )
    source = watched("self.log('loss', loss)", "")
    assert not findings_of(UnsyncedMetric, source, files={"other/script.py": other})


def test_the_largest_of_a_list_is_reduced_by_max() -> None:
    source = HEAD + (
        "class Net(pl.LightningModule):\n    def validation_step(self, batch, batch_idx):\n"
        "        self.worst.append(F.mse_loss(self(batch[0]), batch[1]))\n\n    def on_validation_epoch_end(self):\n"
        "        self.log('worst', torch.stack(self.worst).max())\n        self.worst.clear()\n"
    )
    (found,) = findings_of(UnsyncedMetric, source)
    assert found.applicability is Applicability.SAFE and found.fix is not None
    assert [e.name for e in found.fix.edits] == ["sync_dist", "reduce_fx"]  # type: ignore[attr-defined]
